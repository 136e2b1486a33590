"""The benchmarks' runner: what it keeps, what it shows, what it refuses."""

import json
import runpy
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

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


def test_a_script_that_fails_keeps_what_it_printed_and_lets_the_others_run(tmp_path, capsys):
    def script(name: str, text: str) -> tuple[Path, dict[str, object]]:
        (tmp_path / f"{name}.py").write_text(f"import sys\n{text}\n")
        return tmp_path / f"{name}.py", {"MINUTES": 0.1}

    found = {
        "half": script("half", f"print({json.dumps(json.dumps(line('half')))})\nsys.exit(3)"),
        "mute": script("mute", ""),
        "well": script("well", f"print({json.dumps(json.dumps(line('well')))})"),
    }
    failed = runner["run_all"](found, tmp_path / "results" / "latest.jsonl")
    assert failed == ["half.py ended with 3; what it said is above", "mute.py printed no result"]
    assert [x["bench"] for x in runner["read"](tmp_path / "results" / "latest.jsonl")] == ["half", "well"]
    assert "well" in capsys.readouterr().out


@pytest.mark.slow
def test_a_script_that_does_not_end_is_ended_with_all_that_it_started(tmp_path):
    text = """
        import subprocess, sys, time
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        print('{"bench": "a", "ratio": 1, "median_of": 3, "details": {"child": %d}}' % child.pid, flush=True)
        time.sleep(60)
    """
    (tmp_path / "hangs.py").write_text(textwrap.dedent(text))
    ran = runner["run"](tmp_path / "hangs.py", 5)
    assert ran.failure.startswith("hangs.py had not ended after ")
    child = Path("/proc") / str(ran.lines[0]["details"]["child"]) / "stat"
    deadline = time.monotonic() + 30  # it was killed; the kernel takes a moment to say so
    while _is_running(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_running(child)


def _is_running(stat):
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_every_benchmark_says_how_long_it_takes():
    assert all(constants["MINUTES"] > 0 for _, constants in runner["scripts"]().values())


def test_a_benchmark_is_a_script_that_has_a_name(tmp_path):
    (tmp_path / "one.py").write_text('NAME = "one"\nWANT = 3\n')
    (tmp_path / "part.py").write_text("x = 1\n")
    found = runner["scripts"](tmp_path)
    assert list(found) == ["one"]
    assert found["one"][1]["WANT"] == 3
