"""`strop eval` on a real small model: the table, JSON, and the directory of results."""

import json
import sys

import pytest

from strop.cli.eval_table import remarks, results_table
from strop.cli.evaluate import main
from strop.config.tree import EvalSet
from strop.eval.evaluate import summarise
from strop.eval.results import Results
from strop.store.jsonl import read_log
from strop.store.samples import read_samples
from strop.telemetry.terminal import open_terminal

REWARD = """
def letter(sample): return float(sample.response[:1] < "a")
def fails(sample): raise RuntimeError("judge is down")
"""


@pytest.fixture
def evaluated(tiny_dir, tmp_path, monkeypatch, capsys):
    """Output and errors of `strop eval` on the tiny model, on three rows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(REWARD)
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"prompt": "{c}"}}\n' for c in "abc"))

    def run(flags):
        sets = "--eval-prompt-data letters rows.jsonl --n-samples-per-eval-prompt 2 --eval-temperature 1"
        argv = f"{tiny_dir} {sets} --reward.fn mine.py:letter --rollout.max_response_tokens 3 {flags}"
        assert main(argv.split()) == 0
        return capsys.readouterr()

    return run


def test_results_are_kept_with_their_samples(evaluated, tmp_path):
    (record,) = map(json.loads, evaluated("--json --out kept").out.splitlines())
    assert (record["dataset"], record["step"], record["n"], record["samples"]) == ("letters", None, 3, 6)
    assert read_log(tmp_path / "kept/results.jsonl") == [record]
    samples = read_samples(tmp_path / "kept/letters.parquet")
    assert [sample.prompt_id for sample in samples] == [f"rows.jsonl:{row}" for row in (1, 1, 2, 2, 3, 3)]
    assert record["mean"] == pytest.approx(sum(sample.reward for sample in samples) / 6)
    config = json.loads((tmp_path / "kept/config.json").read_text())
    assert config["values"]["eval"]["datasets"][0]["samples_per_prompt"] == 2


def test_failures_are_said_with_the_first_reason(evaluated):
    told = evaluated("--reward.retries 0 --eval.datasets.0.reward mine.py:fails")
    assert "letters: 6 failed; the first: reward" in told.err
    assert "judge is down" in told.err
    assert told.out.splitlines()[2].split() == ["letters", "–", "–", "–", "–", "0/3", "6", "–", "–"]


def test_a_data_set_that_is_done_is_whole_when_the_next_one_crashes(tmp_path):
    results = Results(tmp_path / "kept", {"values": {}})
    section = EvalSet(name="a", source="x", n=1)
    results.add(summarise(section, []), {"dataset": "a", "mean": 0.5})
    assert read_log(tmp_path / "kept/results.jsonl") == [{"dataset": "a", "mean": 0.5}]
    assert read_samples(tmp_path / "kept/a.parquet") == []
    results.close()


def test_the_table_has_a_column_for_every_k_and_says_which_interval(capsys):
    known = {"low": 0.4, "high": 0.8, "truncated_share": 0.0, "response_tokens": 5.0, "prompts": 4}
    a = {"dataset": "a", **known, "mean": 0.6, "n": 4, "failed": 0, "interval": "wilson", "pass_at_1": 0.6}
    b = {"dataset": "b", **known, "mean": None, "low": None, "n": 3, "failed": 2, "interval": "normal"}
    records = [a, {**b, "pass_at_1": 0.5, "pass_at_4": None, "pass_left_out_4": 2}]
    open_terminal(sys.stdout, plain=True).print(results_table(records))
    header, _, *rows = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()) for line in (header, *rows)] == [
        "data set mean 95 % pass@1 pass@4 prompts failed cut tokens",
        "a 0.6000 0.4000 to 0.8000 0.6000 – 4 0 0.000 5.0",
        "b – – 0.5000 – 3/4 2 0.000 5.0",
    ]
    lines = remarks(records)
    assert lines[0].startswith("95 %: Wilson's interval of a share; normal over prompts")
    assert lines[-1] == "b: prompts left out, as too many samples failed: 2 from pass@4"
