import json
import os

import pytest

from strop.errors import ConfigError, RunError
from strop.sample import Group, Prompt, Sample
from strop.store.jsonl import read_log
from strop.store.layout import finished_steps
from strop.store.reader import RunReader
from strop.store.run_dir import RunDirectory
from strop.store.samples import write_samples

CONFIG = {"values": {"model": "tiny"}}
GROUP = Group(0, Prompt(id="p", messages="hello"), [Sample(index=0, group_id=0)])


def fill(path):
    (path / "model.safetensors").write_bytes(b"weights")


def run_steps(run, steps, *, checkpoint_at=()):
    for step in steps:
        write_samples(run.samples_path(step), [GROUP])
        run.metrics.append({"step": step})
        write_samples(run.eval_path("numbers", step + 1), [GROUP])
        run.evals.append({"dataset": "numbers", "step": step + 1})
        if step + 1 in checkpoint_at:
            run.write_checkpoint(step + 1, fill=fill, state={"position": step + 1}, keep=1)


def killed_run(path, *, checkpoint_at=()):
    with RunDirectory.create(path, "run", config=CONFIG) as run:
        run_steps(run, range(5), checkpoint_at=checkpoint_at)
    (path / "samples" / "step-4" / ".groups.parquet.tmp").write_text("half")
    (path / "checkpoints" / ".step-5.tmp").mkdir()
    with (path / "metrics.jsonl").open("a") as log:
        log.write('{"step": 5, "torn')
    return path


def test_a_new_run_says_what_it_is(tmp_path):
    with RunDirectory.create(tmp_path / "a", "run", config=CONFIG):
        reader = RunReader(tmp_path / "a")
        assert reader.about()["format"] == 1
        assert reader.about()["pid"] == os.getpid()
        assert reader.config() == CONFIG
        assert reader.metrics() == []
        assert reader.summary() is None


def test_a_path_that_exists_is_refused(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(ConfigError) as error:
        RunDirectory.create(tmp_path / "a", "run", config=CONFIG)
    assert str(error.value) == (
        f'store.dir = "{tmp_path}/a" already exists; choose another, or add --resume to continue it'
    )


def test_a_path_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError) as error:
        RunDirectory.create(tmp_path / "file" / "a", "run", config=CONFIG)
    assert (
        str(error.value) == f'store.dir = "{tmp_path}/file/a" cannot be made: Not a directory; choose another'
    )


def test_nothing_is_left_beside_a_new_run(tmp_path):
    RunDirectory.create(tmp_path / "runs" / "a", "run", config=CONFIG).close()
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["a"]


def test_runs_begun_in_one_second_go_to_different_places_and_latest_is_the_last(tmp_path):
    first = RunDirectory.create(None, "numbers", config=CONFIG, base=tmp_path / "runs")
    second = RunDirectory.create(None, "numbers", config=CONFIG, base=tmp_path / "runs")
    assert first.path != second.path
    assert (tmp_path / "runs" / "latest").readlink().name == second.path.name
    assert not (tmp_path / "runs" / "latest").readlink().is_absolute()


def test_a_run_that_is_being_written_cannot_be_resumed(tmp_path):
    with (
        RunDirectory.create(tmp_path / "a", "run", config=CONFIG),
        pytest.raises(ConfigError, match="is being written by process"),
    ):
        RunDirectory.resume(tmp_path / "a", config=CONFIG)


def test_resume_keeps_what_the_checkpoint_saw_and_nothing_else(tmp_path):
    path = killed_run(tmp_path / "a", checkpoint_at=(3,))
    with RunDirectory.resume(path, config=CONFIG) as run:
        assert run.checkpoint.step == 3
        assert run.checkpoint.state == {"position": 3}
    reader = RunReader(path)
    assert [row["step"] for row in reader.metrics()] == [0, 1, 2]
    assert reader.sample_steps() == [0, 1, 2]
    assert reader.eval_steps("numbers") == [1, 2, 3]
    assert [row["step"] for row in reader.evals()] == [1, 2, 3]
    assert list(path.rglob("*.tmp")) == []


def test_a_resumed_run_ends_with_the_files_of_an_uninterrupted_one(tmp_path):
    path = killed_run(tmp_path / "a", checkpoint_at=(3,))
    with RunDirectory.resume(path, config=CONFIG) as run:
        run_steps(run, range(3, 5))
    assert [row["step"] for row in read_log(path / "metrics.jsonl")] == [0, 1, 2, 3, 4]
    assert RunReader(path).sample_steps() == [0, 1, 2, 3, 4]


def test_resume_without_a_checkpoint_starts_afresh(tmp_path):
    path = killed_run(tmp_path / "a")
    with RunDirectory.resume(path, config={"values": {"model": "other"}}) as run:
        assert run.checkpoint is None
    reader = RunReader(path)
    assert (reader.metrics(), reader.sample_steps(), reader.eval_steps("numbers")) == ([], [], [])
    assert reader.config() == {"values": {"model": "other"}}
    assert [row["event"] for row in reader.events()] == ["resumed"]


def test_resume_forgets_how_the_run_ended_before(tmp_path):
    path = killed_run(tmp_path / "a", checkpoint_at=(3,))
    (path / "summary.json").write_text(json.dumps({"status": "interrupted", "steps": 3}))
    RunDirectory.resume(path, config=CONFIG).close()
    assert RunReader(path).summary() is None


def test_resuming_what_does_not_exist_is_refused(tmp_path):
    with pytest.raises(ConfigError) as error:
        RunDirectory.resume(tmp_path / "a", config=CONFIG)
    assert str(error.value) == (
        f'store.dir = "{tmp_path}/a" does not exist; leave --resume out to begin a run, '
        f"or name the directory of one"
    )


def test_resuming_what_is_not_a_run_is_refused(tmp_path):
    with pytest.raises(ConfigError) as error:
        RunDirectory.resume(tmp_path, config=CONFIG)
    assert str(error.value) == (
        f'store.dir = "{tmp_path}" is not a run directory: it has no run.json; leave --resume out to begin a '
        f"run, or name the directory of one"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_run_directory_of_another_format_is_refused(tmp_path):
    (tmp_path / "run.json").write_text('{"format": 2}')
    with pytest.raises(
        ConfigError, match="is a run directory of format 2, expected 1; use the strop that wrote"
    ):
        RunReader(tmp_path)


def test_a_changed_checkpoint_stops_the_resume_before_anything_is_deleted(tmp_path):
    path = killed_run(tmp_path / "a", checkpoint_at=(3,))
    (path / "checkpoints" / "step-3" / "model.safetensors").write_bytes(b"Weights")
    with pytest.raises(RunError, match=r"model\.safetensors: has SHA-256 147ec1549866…"):
        RunDirectory.resume(path, config=CONFIG)
    assert RunReader(path).sample_steps() == [0, 1, 2, 3, 4]


def test_a_run_whose_only_checkpoint_is_damaged_is_not_begun_anew(tmp_path):
    path = killed_run(tmp_path / "a", checkpoint_at=(3,))
    (path / "checkpoints" / "step-3" / "model.safetensors").unlink()
    with pytest.raises(RunError) as error:
        RunDirectory.resume(path, config=CONFIG)
    assert str(error.value) == (
        f"{path}/checkpoints/step-3/model.safetensors: is missing, its manifest says 7; no sound checkpoint "
        f"is left: delete {path}/checkpoints to start afresh"
    )


def test_a_log_that_lost_lines_stops_the_resume(tmp_path):
    path = killed_run(tmp_path / "a", checkpoint_at=(3,))
    (path / "metrics.jsonl").write_text('{"step": 0}\n')
    with pytest.raises(
        RunError, match=r"metrics\.jsonl: holds 12 bytes, the checkpoint of step 3 was taken at 33"
    ):
        RunDirectory.resume(path, config=CONFIG)


def test_a_refused_resume_leaves_the_directory_unlocked(tmp_path):
    path = killed_run(tmp_path / "a", checkpoint_at=(3,))
    (path / "checkpoints" / "step-3" / "model.safetensors").unlink()
    with pytest.raises(RunError):
        RunDirectory.resume(path, config=CONFIG)
    with pytest.raises(RunError):
        RunDirectory.resume(path, config=CONFIG)


def test_only_a_finished_run_has_finished_steps(tmp_path):
    with RunDirectory.create(tmp_path / "a", "run", config=CONFIG) as run:
        assert finished_steps(run.path) is None
        run.write_summary({"status": "interrupted", "steps": 3})
        assert finished_steps(run.path) is None
        run.write_summary({"status": "finished", "steps": 5, "rollout_tokens_per_s": float("nan")})
        assert finished_steps(run.path) == 5


def test_a_directory_called_latest_is_not_replaced(tmp_path):
    (tmp_path / "latest").mkdir()
    with pytest.raises(ConfigError, match="latest is not a link to a run; move it away"):
        RunDirectory.create(None, "run", config=CONFIG, base=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["latest"]
