"""The example of supervised training, a reward model and PPO: each stage is better than the one before."""

import json
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest
from processes import Shell

from strop.store.reader import RunReader

EXAMPLE = Path(__file__).parents[2] / "examples/three_stages"
FILES = Path("examples/three_stages")
RUNS = Path("runs/three_stages")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with the example where the repository has it."""
    shutil.copytree(EXAMPLE, tmp_path / FILES, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def trained(stage: str, shell: Shell, place: Path) -> RunReader:
    ended = shell.run("train", FILES / f"{stage}.toml", cwd=place)
    assert ended.code == 0, ended.err
    return RunReader(place / RUNS / stage)


def measured(run: RunReader, name: str) -> dict[str, dict[str, Any]]:
    """A held-out set at the start and at the end."""
    return {record["when"]: record for record in run.evals() if record["dataset"] == name}


def true_score(model: str | Path, shell: Shell, place: Path) -> float:
    ended = shell.run("eval", FILES / "true_score.toml", "--model", model, "--json", cwd=place)
    assert ended.code == 0, ended.err
    return json.loads(ended.out)["mean"]


def nats_a_reply(run: RunReader) -> float:
    """KL to the model of stage 1 in the last steps: the mean of a token times the tokens of a reply."""
    last = run.metrics()[-5:]
    return sum(step["train/kl_loss"] * step["rollout/response_tokens"] for step in last) / len(last)


def test_rows_of_the_three_stages_are_those_that_the_task_makes() -> None:
    made = dict(runpy.run_path(str(EXAMPLE / "task.py"))["files"]())
    assert made == {path.name: path.read_text() for path in EXAMPLE.glob("*.jsonl")}


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_each_of_the_three_stages_is_better_than_the_one_before(shell: Shell, place: Path) -> None:
    supervised = trained("1_sft", shell, place)
    loss = measured(supervised, "demonstrations")
    assert loss["start"]["loss"] > 5
    assert loss["end"]["loss"] < 0.6
    assert true_score("tiny", shell, place) == 0
    assert 0.4 < true_score(RUNS / "1_sft/checkpoints/step-160", shell, place) < 0.7

    judge = measured(trained("2_reward_model", shell, place), "comparisons")
    assert judge["start"]["mean"] == 0
    assert judge["end"]["mean"] >= 0.9

    policy = trained("3_ppo", shell, place)
    truth, liked = measured(policy, "true_score"), measured(policy, "reward_model")
    assert truth["end"]["mean"] >= truth["start"]["mean"] + 0.3
    assert liked["end"]["mean"] >= liked["start"]["mean"] + 0.8
    assert 0.2 < nats_a_reply(policy) < 5
