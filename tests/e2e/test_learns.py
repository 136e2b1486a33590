"""The first example: what a short run leaves behind, and that a whole one learns."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from processes import Ended, Shell
from run_facts import books, summary

from strop.store.reader import RunReader

EXAMPLE = Path(__file__).parents[2] / "examples/first_run/run.toml"
SHORT = "--rollout.batch_size 3 --eval.datasets.0.n 8 --train.optim.warmup 0 --runtime.threads 1"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the example is run from."""
    return tmp_path_factory.mktemp("place")


@pytest.fixture(scope="module")
def ended(shell: Shell, place: Path) -> Ended:
    return shell.run("train", EXAMPLE, *SHORT.split(), "--loop.steps=2", cwd=place)


@pytest.fixture(scope="module")
def run(ended: Ended, place: Path) -> RunReader:
    assert ended.code == 0, ended.err
    return RunReader(place / "runs/latest")


def test_a_run_without_a_directory_of_its_own_is_the_latest_in_runs(run: RunReader, place: Path) -> None:
    assert run.path.resolve().parent == (place / "runs").resolve()
    assert run.path.resolve().name.startswith("first_run-")


def test_a_run_ends_with_where_it_is_and_what_to_do_next(ended: Ended, run: RunReader) -> None:
    name = Path("runs") / run.path.resolve().name
    assert str(name) in ended.out
    assert f"strop show {name}" in ended.out
    assert ended.err == ""


def test_a_run_of_no_steps_points_to_nothing_that_is_not_there(shell: Shell, place: Path) -> None:
    ended = shell.run("train", EXAMPLE, *SHORT.split(), "--store.dir", "zero", "--loop.steps=0", cwd=place)
    assert ended.code == 0, ended.err
    assert ended.out.endswith("\nrun directory  zero\n")


def test_the_summary_has_the_keys_that_scripts_rely_on(run: RunReader) -> None:
    found = summary(run.path)
    assert list(found) == [
        "status",
        "steps",
        "wall_s",
        "eval",
        "rollout_tokens_per_s",
        "train_tokens_per_s",
        "peak_rss_gib",
    ]
    assert (found["status"], found["steps"]) == ("finished", 2)
    assert found["wall_s"] > 0
    assert found["rollout_tokens_per_s"] > 0
    assert 0.05 < found["peak_rss_gib"] < 8


def test_held_out_prompts_are_evaluated_at_the_start_and_at_the_end(run: RunReader) -> None:
    evals = summary(run.path)["eval"]["digits"]
    assert list(evals) == ["start", "end"]
    assert all(e["n"] == 8 and 0 <= e["mean"] <= 1 for e in evals.values())
    assert [(e["dataset"], e["step"], e["when"]) for e in run.evals()] == [
        ("digits", 0, "start"),
        ("digits", 2, "end"),
    ]
    assert [len(run.eval_samples("digits", step)) for step in run.eval_steps("digits")] == [8, 8]


def test_each_step_has_one_record(run: RunReader) -> None:
    records = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert [(r["step"], r["version"]) for r in records] == [(0, 0), (1, 1)]
    assert all(0 <= r["reward/mean"] <= 1 for r in records)


def test_the_mean_reward_in_the_record_is_that_of_the_stored_samples(run: RunReader) -> None:
    rewards = [sample.reward or 0.0 for sample in run.samples(1)]
    assert run.metrics()[1]["reward/mean"] == pytest.approx(sum(rewards) / len(rewards))


def test_stored_samples_are_parquet_for_any_reader(run: RunReader) -> None:
    table = pq.read_table(run.path / "samples/step-0/groups.parquet")
    stored = run.samples(0)
    assert table["reward"].to_pylist() == [sample.reward for sample in stored]
    assert table["response"].to_pylist() == [sample.response for sample in stored]


def test_a_checkpoint_is_a_model_that_transformers_loads(run: RunReader) -> None:
    from transformers import AutoModelForCausalLM

    checkpoint = run.checkpoint()
    assert checkpoint is not None
    model = AutoModelForCausalLM.from_pretrained(checkpoint.path)
    assert model.config.model_type == "llama"
    assert all(parameter.isfinite().all() for parameter in model.parameters())


def test_every_group_is_accounted_for(run: RunReader) -> None:
    assert books(run.path).is_balanced
    assert (books(run.path).issued, books(run.path).trained) == (6, 6)


def test_the_trace_is_json(run: RunReader) -> None:
    assert json.loads((run.path / "trace.json").read_text())


def test_what_was_run_is_on_record(run: RunReader) -> None:
    config = run.config()
    assert config["values"]["rollout"]["batch_size"] == 3
    assert config["origins"]["rollout.batch_size"] == "--rollout.batch_size"
    assert config["plan"]["threads"] == 1
    assert run.about()["format"] == 1


def test_eval_of_a_run_finds_what_the_run_found_at_its_end(shell: Shell, whole: Path) -> None:
    ended = shell.run("eval", whole, "--json")
    at_the_end = {name: result["end"] for name, result in summary(whole)["eval"].items()}
    assert ended.code == 0, ended.err
    found = {result["dataset"]: result for result in map(json.loads, ended.out.splitlines())}
    assert {name: {key: found[name][key] for key in end} for name, end in at_the_end.items()} == at_the_end
    assert [result["step"] for result in found.values()] == [5, 5]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_first_example_learns(shell: Shell, tmp_path: Path) -> None:
    running = shell.start("train", EXAMPLE, "--store.dir", tmp_path / "run")
    assert running.wait(within_s=500).code == 0
    digits = summary(tmp_path / "run")["eval"]["digits"]
    assert digits["start"]["mean"] < 0.2
    assert digits["end"]["mean"] >= 0.9
