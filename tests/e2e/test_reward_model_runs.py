"""From compared responses to a reward model, and from that to a policy that it likes better."""

import json
import random
from pathlib import Path

import pytest

from strop.cli.main import main

PAIRS = """model = "tiny"
[prompts]
files = ["pairs.jsonl"]
[algo]
type = "reward_model"
{more}
[rollout]
batch_size = 16
{size}
[train.optim]
lr = 2e-3
[loop]
steps = {steps}
[runtime]
threads = 1
[[eval.datasets]]
name = "held"
files = ["held.jsonl"]
"""
RL = """model = "tiny"
[prompts]
files = ["pairs.jsonl"]
[algo]
type = "ppo"
[rollout]
batch_size = 8
samples_per_prompt = 8
max_response_tokens = 3
[reward]
fn = "model"
options = {{ path = "{path}" }}
[train.optim]
lr = 2e-3
[loop]
steps = 25
[runtime]
threads = 1
"""


def row(rng: random.Random, number: int) -> dict[str, object]:
    """Digits are better than letters; of three responses each is better than the next."""
    texts = {"good": "0123456789", "bad": "xyzuvw"}
    words = {name: "".join(rng.choices(text, k=rng.randint(1, 4))) for name, text in texts.items()}
    digits = rng.randint(0, 4)
    return {
        "prompt": "".join(rng.choices("abc", k=4)),
        "chosen": words["good"],
        "rejected": words["bad"],
        "responses": ["1" + rng.choice("23"), "a" + rng.choice("bc"), "x" + rng.choice("yz")],
        "completion": "1" * digits + "x" * (4 - digits),
        "label": digits / 4,
        "metadata": {"subset": ("even", "odd")[number % 2], "margin": 0.5},
    }


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = random.Random(0)
    for name, count in (("pairs", 64), ("held", 20)):
        rows = [row(rng, number) for number in range(count)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def trained(place: Path, name: str, text: str) -> Path:
    (place / f"{name}.toml").write_text(text)
    assert main(["train", f"{name}.toml", "--store.dir", name]) == 0
    return place / name


def last(path: Path) -> dict[str, float]:
    return json.loads(path.read_text().splitlines()[-1])


@pytest.mark.slow
def test_a_reward_model_learns_to_compare_and_a_policy_learns_from_it(place: Path) -> None:
    judge = trained(place, "judge", PAIRS.format(more="", size="", steps=15))
    held = last(judge / "eval/results.jsonl")
    assert held["mean"] >= 0.95
    assert held["subset/even"] >= 0.9
    policy = trained(place, "policy", RL.format(path=judge / "checkpoints/step-15"))
    first = json.loads((policy / "metrics.jsonl").read_text().splitlines()[0])
    assert last(policy / "metrics.jsonl")["reward/mean"] > first["reward/mean"] + 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "size", "least"), [("plackett_luce", 3, 0.9), ("regression", 1, -0.02)]
)
def test_lists_and_numbers_are_learned(place: Path, objective: str, size: int, least: float) -> None:
    text = PAIRS.format(more=f'objective = "{objective}"', size=f"samples_per_prompt = {size}", steps=25)
    run = trained(place, "judge", text)
    assert last(run / "eval/results.jsonl")["mean"] >= least


@pytest.mark.parametrize(
    ("more", "size", "change", "message"),
    [
        ('objective = "plackett_luce"', 2, {}, "has 3 responses, expected 2"),
        ('objective = "plackett_luce"', 3, {"responses": ["a"]}, "must be a list of at least 2 responses"),
        ('objective = "regression"', 1, {"label": True}, "'label' must be a number, got bool True"),
        ('reward_model = { margin_field = "margin" }', 2, {"metadata": {}}, "no number 'margin'"),
    ],
)
def test_a_row_that_cannot_be_learned_is_named(
    place: Path, capsys: pytest.CaptureFixture[str], more: str, size: int, change: dict, message: str
) -> None:
    rows = [json.loads(line) for line in (place / "pairs.jsonl").read_text().splitlines()]
    (place / "pairs.jsonl").write_text("".join(json.dumps(each | change) + "\n" for each in rows))
    (place / "run.toml").write_text(PAIRS.format(more=more, size=f"samples_per_prompt = {size}", steps=1))
    assert main(["train", "run.toml", "--store.dir", "run"]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "pairs.jsonl" in said or "pairs" in said
