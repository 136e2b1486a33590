"""Twenty steps of a tiny model, against committed values: a refactor that changes a number shows here.

Bits depend on the machine, so the values have a tolerance; twins on one machine are compared bit for bit in
tests/e2e. After a change of the mathematics that is meant: `python tests/golden/test_golden_run.py`.
"""

import json
from pathlib import Path

import pytest

from strop.cli.main import main

HERE = Path(__file__).parent
VALUES = HERE / "golden_run.json"
NAMES = (
    "reward/mean",
    "rollout/behavior_logp",
    "train/loss",
    "train/grad_norm",
    "train/entropy",
    "train/kl_loss",
)
FLAGS = [
    *("--loop.steps", "20", "--telemetry.sinks", "[]", "--rollout.samples_per_prompt", "4"),
    *("--rollout.batch_size", "4", "--rollout.max_response_tokens", "6", "--algo.kl_loss_coef", "0.01"),
    *("--algo.entropy_coef", "0.001", "--train.updates_per_step", "2", "--train.max_tokens_per_device", "64"),
    *("--runtime.threads", "1", "--eval.datasets", "[]", "--train.optim.lr", "1e-3"),
]


def golden_run(directory: Path) -> list[dict[str, float]]:
    run = HERE.parents[1] / "examples" / "first_run" / "run.toml"
    assert main(["train", str(run), *FLAGS, "--store.dir", str(directory)]) == 0
    lines = (directory / "metrics.jsonl").read_text().splitlines()
    return [{name: json.loads(line)[name] for name in NAMES} for line in lines]


def test_golden_run(tmp_path, monkeypatch):
    monkeypatch.setenv("STROP_HOME", str(tmp_path / "home"))
    found, expected = golden_run(tmp_path / "run"), json.loads(VALUES.read_text())
    assert len(found) == len(expected) == 20
    for step, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        assert ours == pytest.approx(theirs, rel=2e-3, abs=2e-4), f"step {step}"


if __name__ == "__main__":
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        os.environ["STROP_HOME"] = scratch
        VALUES.write_text(json.dumps(golden_run(Path(scratch) / "run"), indent=1) + "\n")
