"""Every recipe trains on real rollouts of a tiny model, and goes on where it was stopped."""

import json
from pathlib import Path
from typing import Any

import pytest

from strop.cli.main import main
from strop.config.presets import PRESETS
from strop.nn.tiny import make_tiny
from strop.store.ledger import audit
from strop.store.reader import RunReader
from strop.telemetry.metrics import is_timing

pytestmark = pytest.mark.slow

PLAYED = [name for name, preset in PRESETS.items() if "algo.objective" not in preset]
"""Recipes of rollouts; those of rows have tests of their own."""
FIRST_RUN = Path(__file__).parents[2] / "examples/first_run"
SMALL = [
    *("--rollout.batch_size", "4", "--rollout.samples_per_prompt", "4", "--rollout.max_response_tokens", "3"),
    *("--eval.datasets", "[]", "--telemetry.sinks", "[]", "--runtime.threads", "1"),
    *("--train.updates_per_step", "2"),
]
MINE = """
def mixed(sample): return float(sum(sample.tokens) % 7)
def centred(batch): return batch.spread(batch.rewards - batch.rewards.mean())
def plain(inputs): return -inputs.advantage_N * inputs.logp_N
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def _models(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROP_HOME", str(home))


def run(recipe: str, path: Path, *flags: str) -> RunReader:
    mine = path.parent / "mine.py"
    mine.write_text(MINE)
    if recipe == "opd":
        flags = ("--algo.teacher.model", str(make_tiny(path.parent / "teacher", seed=1)), *flags)
    words = [*SMALL, "--reward.fn", f"{mine}:mixed", "--store.dir", str(path), *flags]
    assert main(["train", str(FIRST_RUN / f"{recipe}.toml"), *words]) == 0
    return RunReader(path)


def numbers(reader: RunReader) -> list[dict[str, Any]]:
    return [{name: v for name, v in row.items() if not is_timing(name)} for row in reader.metrics()]


def weights(reader: RunReader) -> bytes:
    checkpoint = reader.checkpoint()
    assert checkpoint is not None
    return (checkpoint.path / "model.safetensors").read_bytes()


@pytest.mark.parametrize("recipe", PLAYED)
def test_a_recipe_that_is_resumed_equals_one_that_was_not(recipe: str, tmp_path: Path) -> None:
    whole = run(recipe, tmp_path / "whole", "--loop.steps", "4")
    run(recipe, tmp_path / "parted", "--loop.steps", "2")
    parted = run(recipe, tmp_path / "parted", "--loop.steps", "4", "--resume")
    assert all(row["train/grad_norm"] > 0 for row in whole.metrics())
    assert numbers(parted) == numbers(whole)
    assert weights(parted) == weights(whole)
    assert all(audit(reader.ledger()).is_balanced for reader in (whole, parted))


@pytest.mark.timeout(300)  # opd trains its teacher first
@pytest.mark.parametrize("recipe", PLAYED)
def test_a_recipe_learns_the_first_task(recipe: str, tmp_path: Path) -> None:
    path = tmp_path / "run"
    words = ["--telemetry.sinks", "[]", "--runtime.threads", "1", "--store.dir", str(path)]
    if recipe == "opd":
        words += ["--algo.teacher.model", str(tmp_path / "teacher")]
    assert main(["train", str(FIRST_RUN / f"{recipe}.toml"), *words]) == 0
    summary = RunReader(path).summary()
    assert summary is not None
    digits = summary["eval"]["digits"]
    assert digits["start"]["mean"] < 0.1
    assert digits["end"]["mean"] >= 0.8


def test_greedy_replies_are_stored_beside_the_samples(tmp_path: Path) -> None:
    reader = run("remax", tmp_path / "run", "--loop.steps", "2")
    for step in range(2):
        greedy, samples = reader.greedy_samples(step), reader.samples(step)
        assert (len(greedy), len(samples)) == (4, 16)
        assert {sample.group_id for sample in greedy} == {sample.group_id for sample in samples}
        assert not {sample.index for sample in greedy} & {sample.index for sample in samples}
        baseline = {sample.group_id: sample.reward for sample in greedy}
        given = reader.advantages(step)
        for sample in samples:
            assert sample.reward is not None
            expected = sample.reward - baseline[sample.group_id]
            assert given[sample.index].tolist() == pytest.approx([expected] * sample.response_length)
    assert reader.metrics()[0]["reward/greedy"] is not None


def test_a_function_of_ones_own_is_trained_with(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    flags = ["--algo.advantage", f"{mine}:centred", "--algo.policy_loss", f"{mine}:plain"]
    own = run("grpo", tmp_path / "own", "--loop.steps", "2", *flags)
    assert weights(own) != weights(run("grpo", tmp_path / "plain", "--loop.steps", "2"))


@pytest.mark.parametrize(
    ("flags", "metric"),
    [
        ("--algo.kl_coef 0.1", "train/kl_loss"),
        ("--algo.correction.type tis --engine.dtype bfloat16", "train/correction_clip_frac"),
        ("--algo.correction.type icepop --algo.correction.normalize", "train/correction_weight"),
        ("--algo.correction.reject geometric --algo.correction.veto 1e-4", "train/correction_reject_frac"),
        ("--algo.opsm_delta 1e-4", "train/opsm_frac"),
        ("--algo.old behavior", "train/mismatch_k3"),
        ("--algo.teacher.model tiny", "train/opd_kl"),
        ("--algo.teacher.model tiny --algo.teacher.form top_k --train.lora.rank 2", "train/opd_kl"),
        ("--algo.old behavior --algo.kl_coef 0.1 --algo.advantage returns --algo.gamma 0.9", "train/kl_loss"),
    ],
)
def test_what_a_key_adds_is_measured(flags: str, metric: str, tmp_path: Path) -> None:
    rows = run("grpo", tmp_path / "run", "--loop.steps", "2", *flags.split()).metrics()
    assert all(isinstance(row[metric], float) for row in rows)


def test_a_policy_that_is_shown_more_teaches_itself(tmp_path: Path) -> None:
    rows = [{"prompt": f"a{n}k", "label": str(n), "metadata": {"hint": f"It is {n}."}} for n in range(8)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["--prompts.source", "none", "--prompts.options", "{}"]
    words += ["--prompts.files", str(tmp_path / "rows.jsonl")]
    words += ["--algo.type", "opd", "--algo.teacher.model", "policy", "--algo.teacher.hint_key", "hint"]
    whole = run("grpo", tmp_path / "whole", "--loop.steps", "4", *words)
    run("grpo", tmp_path / "parted", "--loop.steps", "2", *words)
    parted = run("grpo", tmp_path / "parted", "--loop.steps", "4", "--resume", *words)
    assert all(row["train/grad_norm"] > 0 and row["train/opd_kl"] != 0 for row in whole.metrics())
    assert weights(parted) == weights(whole)
