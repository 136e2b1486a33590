"""Nothing is lost, nothing counted twice: whatever stops a run, it goes on to the end of the undisturbed one.

Processes are real and so is their death; `moments.py` and the hold in `task.py` only choose when it comes.
"""

import os
import random
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import moments
import pytest
from processes import Ended, Running, Shell
from run_facts import (
    books,
    checkpoints,
    content,
    first_difference,
    is_unfinished,
    steps_recorded,
    summary,
)

RUN = Path(__file__).with_name("run.toml")
KILLED = -signal.SIGKILL


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the run of this test goes."""
    return tmp_path / "run"


def killed(shell: Shell, path: Path, moment: Callable[[], None], *, resumes: bool = False) -> None:
    """Run until the moment comes."""
    flags = ["--resume"] if resumes else []
    ended = shell.run("train", RUN, "--store.dir", path, *flags, first=moment)
    assert ended.code == KILLED, ended.out + ended.err
    assert is_unfinished(path)


def held(shell: Shell, path: Path, *, version: int) -> Running:
    """A run that waits in the first rollout with these weights, be it of step `version` or of the evaluation
    before it; the file `go` beside the run lets it go on."""
    env = {"STROP_TEST_HOLD": f"{version} {path.parent}"}
    running = shell.start("train", RUN, "--store.dir", path, env=env)
    running.wait_for((path.parent / "held").exists, f"rollout of version {version}")
    return running


def resumed(shell: Shell, path: Path, *flags: str) -> Ended:
    """Go on to the end."""
    ended = shell.run("train", RUN, "--store.dir", path, "--resume", *flags)
    assert ended.code == 0, ended.out + ended.err
    return ended


def assert_same(whole: Path, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By `strop compare`, and by what it does not look at: the books, and nothing left lying about."""
    assert first_difference(whole, path, capsys) is None
    assert steps_recorded(path) == steps_recorded(whole)
    assert (path / "ledger.jsonl").read_bytes() == (whole / "ledger.jsonl").read_bytes()
    assert books(path).is_balanced
    assert books(path).pending == 0
    assert content(path).keys() == content(whole).keys()


def test_the_run_of_these_tests_has_what_is_hard_to_resume(whole: Path) -> None:
    reasons = books(whole).reasons
    assert reasons["surplus"] > 0
    assert reasons["all rewards equal: 0"] + reasons["all rewards equal: 1"] > 0
    assert books(whole).issued > 5 * (4 + 1), "no step needed a second round"


@pytest.mark.slow
def test_a_run_killed_in_rollout_ends_as_if_it_had_not_been(
    shell: Shell, whole: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = held(shell, path, version=3)
    os.kill(running.pid, signal.SIGKILL)
    assert running.wait().code == KILLED
    assert is_unfinished(path)
    assert steps_recorded(path) == [0, 1, 2]
    assert checkpoints(path) == ["step-2"]
    assert books(path).pending == 5
    resumed(shell, path)
    assert_same(whole, path, capsys)


@pytest.mark.slow
def test_a_run_killed_in_training_ends_as_if_it_had_not_been(
    shell: Shell, whole: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed(shell, path, partial(moments.in_training, update=2 * 3))  # the first of step 3's two
    assert steps_recorded(path) == [0, 1, 2]
    assert checkpoints(path) == ["step-2"]
    resumed(shell, path)
    assert_same(whole, path, capsys)


@pytest.mark.slow
def test_a_run_killed_in_the_middle_of_a_checkpoint_ends_as_if_it_had_not_been(
    shell: Shell, whole: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed(shell, path, partial(moments.in_checkpoint, step=4))
    assert checkpoints(path) == [".step-4.tmp", "step-2"]
    assert (path / "checkpoints/.step-4.tmp/model.safetensors").stat().st_size > 0
    assert not (path / "checkpoints/.step-4.tmp/manifest.json").exists()
    resumed(shell, path)
    assert_same(whole, path, capsys)


@pytest.mark.slow
def test_a_run_killed_twice_once_before_any_checkpoint_ends_as_if_it_had_not_been(
    shell: Shell, whole: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed(shell, path, partial(moments.in_training, update=2 * 1 + 1))
    assert steps_recorded(path) == [0]
    assert checkpoints(path) == []
    killed(shell, path, partial(moments.in_checkpoint, step=5), resumes=True)
    assert checkpoints(path) == [".step-5.tmp", "step-4"]
    resumed(shell, path)
    assert_same(whole, path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize(
    "moment",
    [
        partial(moments.after_checkpoint, step=4),
        partial(moments.before_metrics, step=3),
        partial(moments.after_eval, step=0),
        partial(moments.after_eval, step=4),
        partial(moments.after_eval, step=5),
        partial(moments.in_checkpoint, step=2),
    ],
    ids=lambda moment: f"{moment.func.__name__}-{moment.keywords['step']}",
)
def test_a_run_killed_at_an_awkward_moment_ends_as_if_it_had_not_been(
    shell: Shell, whole: Path, path: Path, moment: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    killed(shell, path, moment)
    resumed(shell, path)
    assert_same(whole, path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_run_killed_at_any_time_ends_as_if_it_had_not_been(
    shell: Shell, whole: Path, path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(seed)
    flags = ["--store.dir", path]
    for _ in range(3):
        running = shell.start("train", RUN, *flags)
        running.wait_for(lambda: (path / "run.json").exists(), "a run directory")
        time.sleep(rng.uniform(0, 2))
        running.process.kill()
        running.wait()
        flags = ["--store.dir", path, "--resume"]
    resumed(shell, path)
    assert_same(whole, path, capsys)


@pytest.mark.slow
def test_two_runs_with_one_seed_are_equal(
    shell: Shell, whole: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run("train", RUN, "--store.dir", path)
    assert_same(whole, path, capsys)


@pytest.mark.slow
def test_another_seed_makes_another_run_and_compare_names_the_first_difference(
    shell: Shell, whole: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run("train", RUN, "--store.dir", path, "--loop.seed", "1")
    difference = first_difference(whole, path, capsys)
    assert difference is not None
    assert difference.startswith("step 0: ")


@pytest.mark.slow
def test_ctrl_c_ends_the_step_and_checkpoints_and_the_run_can_go_on(
    shell: Shell, whole: Path, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = held(shell, path, version=0)
    os.kill(running.pid, signal.SIGINT)
    running.wait_for(lambda: "stopping after this step" in running.out.read_text(), "the note")
    (path.parent / "go").touch()
    ended = running.wait()
    assert ended.code == 130
    assert ended.err == ""
    assert f"interrupted after 1 steps; go on with --store.dir {path} --resume" in ended.out
    assert summary(path)["status"] == "interrupted"
    assert checkpoints(path) == ["step-1"]
    assert books(path).is_balanced
    resumed(shell, path)
    assert_same(whole, path, capsys)


@pytest.mark.slow
def test_a_second_ctrl_c_ends_the_run_at_once_in_one_line(
    shell: Shell, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = held(shell, path, version=1)
    os.kill(running.pid, signal.SIGINT)
    running.wait_for(lambda: "stopping after this step" in running.out.read_text(), "the note")
    os.kill(running.pid, signal.SIGINT)
    ended = running.wait()
    assert ended.code == 130
    assert ended.err == "strop: interrupted\n"
    assert summary(path)["status"] == "interrupted"
    assert books(path).is_balanced


def test_a_run_that_is_being_written_cannot_be_resumed(shell: Shell, path: Path) -> None:
    running = held(shell, path, version=0)
    ended = shell.run("train", RUN, "--store.dir", path, "--resume")
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert f'store.dir = "{path}" is being written by process {running.pid}' in ended.err


def test_resume_of_a_finished_run_changes_nothing(shell: Shell, whole: Path) -> None:
    before = content(whole)
    assert resumed(shell, whole).out == f"{whole} is finished: nothing to resume\n"
    assert content(whole) == before


@pytest.mark.slow
def test_a_finished_run_can_be_made_longer(shell: Shell, path: Path) -> None:
    flags = ["--train.optim.warmup", "0", "--train.optim.schedule", "constant", "--loop.steps"]
    shell.run("train", RUN, "--store.dir", path, *flags, "1")
    resumed(shell, path, *flags, "2")
    assert summary(path)["steps"] == 2
    assert steps_recorded(path) == [0, 1]
    assert books(path).is_balanced
