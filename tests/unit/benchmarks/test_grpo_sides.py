"""The sides of `grpo_vs_trl`: one reward, one list of prompts, and strop's loop held between two steps."""

import json
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
texts = runpy.run_path(str(BENCHMARKS / "problems.py"))
problems, instruction = texts["problems"], texts["INSTRUCTION"]
digits = runpy.run_path(str(BENCHMARKS / "peers" / "digits.py"))


def test_both_sides_are_given_one_reward():
    responses = ["4 + 4 = 8 ", "", "none"]
    ours = [digits["of_sample"](SimpleNamespace(response=text)) for text in responses]
    theirs = digits["of_completions"]([[{"role": "assistant", "content": text}] for text in responses])
    assert ours == theirs == [0.3, 0.0, 0.0]


def test_problems_are_gsm8ks_where_the_data_is(tmp_path):
    (tmp_path / "gsm8k").mkdir()
    rows = [{"question": f"What is {n}?", "answer": f"#### {n}"} for n in range(3)]
    (tmp_path / "gsm8k" / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert problems(str(tmp_path), 2) == [
        {"prompt": "What is 0?" + instruction, "label": "#### 0"},
        {"prompt": "What is 1?" + instruction, "label": "#### 1"},
    ]


@pytest.mark.parametrize("data", [None, "/nowhere"])
def test_without_the_data_problems_are_made_and_all_differ(data):
    made = problems(data, 64)
    assert len({row["prompt"] for row in made}) == 64


@pytest.mark.slow
def test_our_side_answers_one_step_for_each_that_is_asked_for(tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in problems(None, 4)))
    size = {"prompts": 2, "samples": 3, "cap": 5, "lr": 1e-6, "steps": 1000, "threads": 1}
    given = {"model": "tiny", "dtype": "float32", "rows": str(rows), **size}
    command = [sys.executable, str(BENCHMARKS / "peers" / "strop_grpo.py"), json.dumps(given)]
    done = subprocess.run(command, input="{}\n{}\n", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded, *steps = map(json.loads, done.stdout.splitlines())
    assert set(loaded) == {"peak_gib"}
    assert len(steps) == 2
    assert all(0 < step["tokens"] <= 2 * 3 * 5 and step["seconds"] > 0 for step in steps)
    # bytes of two prompts, each three times
    sizes = [len(row["prompt"].encode()) for row in problems(None, 4)]
    assert steps[0]["prompt_tokens"] - 3 * sum(sizes[:2]) == steps[1]["prompt_tokens"] - 3 * sum(sizes[2:])
