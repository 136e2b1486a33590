"""The forecast of memory is within 15 % of what runs then take."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from strop.config.home import models_dir

ROOT = Path(__file__).parents[3]
NUMBERS = ["examples/numbers/run.toml", "--rollout.batch_size", "4", "--eval.datasets", "[]"]
FIRST = ["examples/first_run/run.toml", "--loop.steps", "2", "--rollout.batch_size", "8"]
RUNS = {
    "tiny": FIRST,
    "one update": [*NUMBERS, "--loop.steps", "1"],
    "two updates": [*NUMBERS, "--loop.steps", "2"],
    "bfloat16 engine": [*NUMBERS, "--loop.steps", "1", "--engine.dtype", "bfloat16"],
    "reference": [*NUMBERS, "--loop.steps", "1", "--algo.kl_loss_coef", "0.1"],
    "adapters": [*NUMBERS, "--loop.steps", "2", "--train.lora.rank", "8"],
    "long responses": [
        *NUMBERS, "--loop.steps", "2", "--rollout.max_response_tokens", "48", "--rollout.ignore_eos", "true",
        "--train.max_tokens_per_device", "512",
    ],
}  # fmt: skip


def strop(*argv):
    done = subprocess.run(
        [Path(sys.executable).with_name("strop"), *argv],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", RUNS)
def test_a_run_takes_what_was_forecast(name, tmp_path):
    if name != "tiny" and not (models_dir() / "smollm2-135m").is_dir():
        pytest.skip("strop model pull smollm2-135m")
    flags = [*RUNS[name], "--runtime.threads", "1", "--telemetry.sinks", "[]"]
    forecast = json.loads(strop("plan", *flags, "--no-probe", "--json"))["memory"]["peak_gib"]
    strop("train", *flags, "--store.dir", str(tmp_path / "run"))
    measured = json.loads((tmp_path / "run/summary.json").read_text())["peak_rss_gib"]
    assert forecast == pytest.approx(measured, rel=0.15)
