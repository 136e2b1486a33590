"""Runs on rows that hold what is trained: they learn, and whatever stops them, they end as if it had not."""

import json
from functools import partial
from pathlib import Path

import moments
import pytest
from processes import Shell
from run_facts import books, first_difference

from strop.store.reader import RunReader

pytestmark = pytest.mark.slow

RUN = """
model = "tiny"
[algo]
type = "{type}"
[prompts]
files = ["rows.jsonl"]
[rollout]
batch_size = 8
[train]
updates_per_step = 2
max_tokens_per_device = 48
[train.optim]
lr = 3e-3
schedule = "cosine"
warmup = 2
[eval]
every = 2
[[eval.datasets]]
name = "dev"
files = ["rows.jsonl@[:6]"]
[store]
checkpoint_every = 2
[runtime]
threads = 1
[loop]
steps = 5
"""
TYPES = ("sft", "dpo", "ipo", "kto", "orpo", "simpo", "cpo")


def rows():
    for number in range(20):
        right, wrong = str(number + 1), str(number)
        good = number % 2 == 0
        yield {
            "prompt": f"{number}+1=",
            "completion": right if good else wrong,
            "label": good,
            "chosen": right,
            "rejected": wrong,
        }


@pytest.fixture(params=TYPES)
def run(request, tmp_path) -> Path:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    (tmp_path / "run.toml").write_text(RUN.format(type=request.param))
    return tmp_path / "run.toml"


def test_a_killed_run_on_rows_ends_as_if_it_had_not_been(
    shell: Shell, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, path = run.parent / "whole", run.parent / "killed"
    ended = shell.run("train", run, "--store.dir", whole)
    assert ended.code == 0, ended.err
    shell.run("train", run, "--store.dir", path, first=partial(moments.in_training, update=2 * 3))
    assert [row["step"] for row in RunReader(path).metrics()] == [0, 1, 2]
    resumed = shell.run("train", run, "--store.dir", path, "--resume")
    assert resumed.code == 0, resumed.err
    assert first_difference(whole, path, capsys) is None
    assert books(path).is_balanced
    assert books(path).pending == 0
    assert "\nloss " in shell.run("compare", whole, path).out, "there are no rewards to show"


def test_a_run_on_rows_learns_them(shell: Shell, run: Path) -> None:
    path = run.parent / "run"
    flags = ["--loop.steps", "30", "--train.optim.schedule", "constant", "--train.updates_per_step", "1"]
    ended = shell.run("train", run, "--store.dir", path, *flags, "--rollout.batch_size", "20")
    assert ended.code == 0, ended.err
    metrics, evals = RunReader(path).metrics(), RunReader(path).evals()
    first, last = (sum(row["train/loss"] for row in part) for part in (metrics[:5], metrics[-5:]))
    assert last < first
    assert evals[-1]["loss"] < evals[0]["loss"]
    assert evals[-1]["mean"] > evals[0]["mean"]
    if "train/rewards/margins" in metrics[0]:
        assert metrics[-1]["train/rewards/margins"] > metrics[0]["train/rewards/margins"]


@pytest.mark.parametrize("name", ["sft", "dpo"])
def test_an_example_on_rows_learns_with_a_tiny_model(shell: Shell, tmp_path: Path, name: str) -> None:
    file, path = Path(__file__).parents[2] / "examples" / name / "run.toml", tmp_path / "run"
    ended = shell.run("train", file, "--model", "tiny", "--store.dir", path, "--train.optim.lr", "3e-3")
    assert ended.code == 0, ended.err
    first, last = RunReader(path).evals()
    assert last["loss"] < first["loss"]


def test_other_commands_know_runs_on_rows(shell: Shell, run: Path) -> None:
    planned = shell.run("plan", run)
    assert planned.code == 0, planned.err
    assert "20 rows (" in planned.out
    assert "engine    none: nothing is played" in planned.out
    assert json.loads(shell.run("plan", run, "--json").out)["rows"]["rows"] == 20
    looked = shell.run("doctor", run)
    assert looked.code == 0, looked.out + looked.err
    assert "6 of them are trained on" in looked.out
    refused = shell.run("eval", run)
    assert refused.code == 2
    assert refused.err.startswith(f"strop: strop eval plays prompts, but {run} trains on rows")
