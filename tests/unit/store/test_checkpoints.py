import json
import shutil

import pytest

from strop.errors import DataError, RunError
from strop.store.checkpoints import Cut, latest_checkpoint, read_checkpoint, survey, verify, write_checkpoint

CUT = Cut(state={"position": 3}, offsets={"metrics.jsonl": 120})


def fill(path):
    (path / "model.safetensors").write_bytes(b"weights")
    (path / "tokenizer").mkdir()
    (path / "tokenizer" / "vocab.json").write_text("{}")


def names(path):
    return sorted(entry.name for entry in (path / "checkpoints").iterdir())


def test_a_checkpoint_comes_back_as_written(tmp_path):
    write_checkpoint(tmp_path, 4, fill=fill, cut=CUT, keep=1)
    found = latest_checkpoint(tmp_path)
    assert (found.step, found.state, found.offsets) == (4, CUT.state, CUT.offsets)
    assert found.path == tmp_path / "checkpoints" / "step-4"
    assert sorted(found.files) == ["model.safetensors", "tokenizer/vocab.json"]
    verify(found)


def test_no_checkpoint_is_none(tmp_path):
    assert latest_checkpoint(tmp_path) is None


def test_the_newest_is_by_number_and_older_ones_beyond_keep_go(tmp_path):
    for step in (2, 9, 10):
        write_checkpoint(tmp_path, step, fill=fill, cut=CUT, keep=2)
    assert names(tmp_path) == ["step-10", "step-9"]
    assert latest_checkpoint(tmp_path).step == 10


def test_a_kill_while_the_files_are_written_leaves_the_one_before(tmp_path):
    write_checkpoint(tmp_path, 1, fill=fill, cut=CUT, keep=1)

    def killed(path):
        fill(path)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_checkpoint(tmp_path, 2, fill=killed, cut=CUT, keep=1)
    assert names(tmp_path) == [".step-2.tmp", "step-1"]
    assert latest_checkpoint(tmp_path).step == 1


def test_a_kill_before_the_rename_leaves_the_one_before(tmp_path):
    write_checkpoint(tmp_path, 1, fill=fill, cut=CUT, keep=2)
    write_checkpoint(tmp_path, 2, fill=fill, cut=CUT, keep=2)
    (tmp_path / "checkpoints" / "step-2").rename(tmp_path / "checkpoints" / ".step-2.tmp")
    assert latest_checkpoint(tmp_path).step == 1


def test_leftovers_do_not_hinder_the_next_attempt(tmp_path):
    (tmp_path / "checkpoints" / ".step-2.tmp").mkdir(parents=True)
    (tmp_path / "checkpoints" / ".step-2.tmp" / "stale").write_text("x")
    written = write_checkpoint(tmp_path, 2, fill=fill, cut=CUT, keep=1)
    assert "stale" not in written.files
    assert names(tmp_path) == ["step-2"]


def test_a_kill_while_an_older_one_is_deleted_leaves_the_new_one(tmp_path):
    write_checkpoint(tmp_path, 2, fill=fill, cut=CUT, keep=1)
    (tmp_path / "checkpoints" / ".step-1.tmp").mkdir()
    assert latest_checkpoint(tmp_path).step == 2


def test_a_step_is_written_once(tmp_path):
    write_checkpoint(tmp_path, 2, fill=fill, cut=CUT, keep=1)
    again = write_checkpoint(tmp_path, 2, fill=fill, cut=Cut({"position": 99}, {}), keep=1)
    assert again.state == CUT.state


def test_a_copy_beside_the_checkpoints_is_left_alone(tmp_path):
    write_checkpoint(tmp_path, 1, fill=fill, cut=CUT, keep=1)
    shutil.copytree(tmp_path / "checkpoints" / "step-1", tmp_path / "checkpoints" / "step-1-good")
    write_checkpoint(tmp_path, 2, fill=fill, cut=CUT, keep=1)
    assert names(tmp_path) == ["step-1-good", "step-2"]


def test_a_checkpoint_that_lost_bytes_is_passed_over_by_name(tmp_path):
    write_checkpoint(tmp_path, 1, fill=fill, cut=CUT, keep=2)
    write_checkpoint(tmp_path, 2, fill=fill, cut=CUT, keep=2)
    cut_short = tmp_path / "checkpoints" / "step-2" / "model.safetensors"
    cut_short.write_bytes(b"weig")
    found = survey(tmp_path)
    assert found.newest.step == 1
    assert found.damaged == [f"{cut_short}: holds 4 bytes, its manifest says 7"]


def test_a_missing_file_is_named(tmp_path):
    path = write_checkpoint(tmp_path, 1, fill=fill, cut=CUT, keep=1).path
    (path / "tokenizer" / "vocab.json").unlink()
    with pytest.raises(RunError) as error:
        read_checkpoint(path)
    assert str(error.value) == f"{path}/tokenizer/vocab.json: is missing, its manifest says 2"


def test_verify_names_the_file_that_differs(tmp_path):
    checkpoint = write_checkpoint(tmp_path, 1, fill=fill, cut=CUT, keep=1)
    (checkpoint.path / "model.safetensors").write_bytes(b"Weights")
    assert latest_checkpoint(tmp_path).step == 1
    with pytest.raises(RunError) as error:
        verify(checkpoint)
    assert str(error.value) == (
        f"{checkpoint.path}/model.safetensors: has SHA-256 147ec1549866…, its manifest says 9a129038d9a0…; "
        f"the file was changed or damaged: delete {checkpoint.path} to go on from an older checkpoint"
    )


def test_a_manifest_of_another_format_is_refused(tmp_path):
    path = write_checkpoint(tmp_path, 1, fill=fill, cut=CUT, keep=1).path
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "format": 2}))
    with pytest.raises(DataError, match=r"manifest\.json: format 2 is not known, expected 1"):
        latest_checkpoint(tmp_path)


def test_state_that_json_cannot_hold_leaves_no_checkpoint(tmp_path):
    with pytest.raises(RunError, match=r"the checkpoint of step 1: cannot be stored as JSON"):
        write_checkpoint(tmp_path, 1, fill=fill, cut=Cut({"x": float("nan")}, {}), keep=1)
    assert latest_checkpoint(tmp_path) is None


def test_a_model_that_brings_the_manifest_of_its_own_checkpoint_can_be_checkpointed(tmp_path):
    def fill_from_a_checkpoint(path):
        fill(path)
        (path / "manifest.json").write_text('{"step": 99}')

    written = write_checkpoint(tmp_path, 1, fill=fill_from_a_checkpoint, cut=CUT, keep=1)
    assert written.step == 1
    assert "manifest.json" not in written.files
    verify(written)
