"""A disk that refuses ends a run in one line that names the file; a limit on file sizes stands in for it."""

import resource
from contextlib import contextmanager

import pytest
import torch

from strop.errors import ConfigError, RunError
from strop.nn.loading import load_model
from strop.nn.saving import read_weights, save_model
from strop.nn.tiny import make_tiny
from strop.sample import Group, Prompt, Sample
from strop.store.checkpoints import Cut, write_checkpoint
from strop.store.durable import write_json
from strop.store.jsonl import Log, read_log
from strop.store.run_dir import RunDirectory
from strop.store.samples import write_samples

TOO_LARGE = "cannot be written: .*File too large"


@contextmanager
def files_of_at_most(size):
    """No file of this process may grow beyond `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_summary_that_does_not_fit_names_its_file_and_leaves_nothing(tmp_path):
    with files_of_at_most(10), pytest.raises(RunError, match=f"^{tmp_path}/summary.json: {TOO_LARGE}"):
        write_json(tmp_path / "summary.json", {"status": "a word of some length"})
    assert list(tmp_path.iterdir()) == []


def test_a_line_that_does_not_fit_names_the_log_and_is_no_line(tmp_path):
    log = Log(tmp_path / "metrics.jsonl")
    log.append({"step": 0})
    with files_of_at_most(15), pytest.raises(RunError, match=f"^{tmp_path}/metrics.jsonl: {TOO_LARGE}"):
        log.append({"step": 1})
    log.close()
    assert read_log(tmp_path / "metrics.jsonl") == [{"step": 0}]


def test_samples_that_do_not_fit_name_their_file(tmp_path):
    group = Group(0, Prompt(id="p", messages="hello"), [Sample(index=0, group_id=0)])
    with files_of_at_most(100), pytest.raises(RunError, match=f"^{tmp_path}/groups.parquet: {TOO_LARGE}"):
        write_samples(tmp_path / "groups.parquet", [group])
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_does_not_fit_names_itself_and_leaves_the_one_before(tmp_path):
    def fill(path):
        (path / "model.safetensors").write_bytes(b"x" * 100)

    write_checkpoint(tmp_path, 1, fill=fill, cut=Cut({}, {}), keep=1)
    with files_of_at_most(50), pytest.raises(RunError) as error:
        write_checkpoint(tmp_path, 2, fill=fill, cut=Cut({}, {}), keep=1)
    assert str(error.value) == f"{tmp_path}/checkpoints/step-2: cannot be written: File too large"
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-1"]


def test_weights_that_do_not_fit_name_their_file(tiny, tmp_path):
    with files_of_at_most(10_000), pytest.raises(RunError) as error:
        save_model(tiny, tmp_path)
    assert str(error.value).startswith(f"{tmp_path}/model.safetensors: ")
    assert "File too large" in str(error.value)


def test_weights_that_cannot_be_read_name_their_file(tiny, tiny_dir, tmp_path):
    (tmp_path / "model.safetensors").write_bytes((tiny_dir / "model.safetensors").read_bytes()[:-1])
    with pytest.raises(RunError, match=f"^{tmp_path}/model.safetensors: "):
        read_weights(tiny, tmp_path)


def test_a_source_that_is_gone_at_a_checkpoint_is_named(tiny_dir, tmp_path):
    model = load_model(tiny_dir, torch.float32)
    model.source = tmp_path / "gone"
    with pytest.raises(RunError) as error:
        write_checkpoint(tmp_path, 1, fill=lambda path: save_model(model, path), cut=Cut({}, {}), keep=1)
    assert str(error.value) == (
        f"{tmp_path}/checkpoints/step-1: cannot be written: No such file or directory ({tmp_path}/gone)"
    )


def test_a_new_run_that_does_not_fit_is_refused_and_leaves_nothing(tmp_path):
    with files_of_at_most(10), pytest.raises(ConfigError, match=r"cannot be made: .*File too large; choose"):
        RunDirectory.create(tmp_path / "run", "run", config={"values": {}})
    assert list(tmp_path.iterdir()) == []


def test_what_ended_a_run_is_told_and_not_the_disk_that_then_refuses(tmp_path):
    def fail():
        with RunDirectory.create(tmp_path / "run", "run", config={}):
            (tmp_path / "run").rename(tmp_path / "moved")
            raise RunError("the first")

    with pytest.raises(RunError, match="the first"):
        fail()


def test_a_model_that_does_not_fit_names_its_directory_and_leaves_nothing(tmp_path):
    with files_of_at_most(10_000), pytest.raises(RunError, match=f"^{tmp_path}/tiny: .*File too large"):
        make_tiny(tmp_path / "tiny")
    assert list(tmp_path.iterdir()) == []
