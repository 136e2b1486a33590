"""The benchmarks' runner: what it keeps, what it shows, what it refuses."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
runner = runpy.run_path(str(ROOT / "benchmarks" / "__main__.py"))


def line(bench: str, ratio: float = 1.0, **details: object) -> dict[str, object]:
    return {"bench": bench, "ratio": ratio, "median_of": 3, "details": details}


def test_an_unknown_benchmark_is_one_line_and_exit_2():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--only", "nosuch"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("no benchmark 'nosuch'; there are ")
    assert len(done.stderr.splitlines()) == 1


def test_one_benchmark_replaces_its_own_lines_only(tmp_path):
    results = tmp_path / "results" / "latest.jsonl"
    runner["write"](results, [line("a"), line("b")])
    runner["write"](results, runner["kept"](runner["read"](results), [line("a", 2.0)], "a"))
    assert [(x["bench"], x["ratio"]) for x in map(json.loads, results.read_text().splitlines())] == [
        ("b", 1.0),
        ("a", 2.0),
    ]
    assert list(results.parent.iterdir()) == [results]


def test_a_busy_machine_is_said_before_the_figures():
    assert runner["shown"]({"threads": 2, "quiet": False}).startswith("NOT QUIET")
    assert "QUIET" not in runner["shown"]({"threads": 2, "quiet": True})


def test_a_benchmark_is_a_script_that_has_a_name(tmp_path):
    (tmp_path / "one.py").write_text('NAME = "one"\nWANT = 3\n')
    (tmp_path / "part.py").write_text("x = 1\n")
    found = runner["scripts"](tmp_path)
    assert list(found) == ["one"]
    assert found["one"][1]["WANT"] == 3
