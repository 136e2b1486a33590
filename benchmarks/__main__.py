"""python -m benchmarks [--only NAME] [--list]: run the scripts of this folder, show a table, keep results.

A benchmark is a script with `NAME`, `MINUTES`, `bench()` and, if it likes, `WANT`; run by itself it prints
its results, one JSON line each. Each runs in a process of its own; results are written after every one. One
that fails is named at the end, which is exit 1; what it had printed is kept, and the others run all the same.
"""

import argparse
import ast
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "latest.jsonl"
KEYS = {"bench", "ratio", "median_of", "details"}


def scripts(folder: Path = HERE) -> dict[str, tuple[Path, dict[str, Any]]]:
    """By NAME, with the constants that say what is wanted; nothing is imported."""
    found = {}
    for path in sorted(folder.glob("*.py")):
        constants = dict(_constants(ast.parse(path.read_text())))
        if "NAME" in constants:
            found[constants["NAME"]] = (path, constants)
    return found


def _constants(tree: ast.Module) -> list[tuple[str, Any]]:
    return [
        (node.targets[0].id, node.value.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    ]


def kept(old: list[dict[str, Any]], new: list[dict[str, Any]], ran: str) -> list[dict[str, Any]]:
    """The lines of other benchmarks, and the new ones of this."""
    return [line for line in old if line["bench"] != ran] + new


def read(path: Path) -> list[dict[str, Any]]:
    """Results of before, if there are any."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    """Aside, then renamed: a run that is killed leaves the results of before."""
    path.parent.mkdir(exist_ok=True)
    aside = path.with_suffix(".new")
    aside.write_text("".join(json.dumps(line) + "\n" for line in lines))
    aside.rename(path)


@dataclass(frozen=True, slots=True)
class Ran:
    """One script."""

    lines: list[dict[str, Any]]
    failure: str | None
    """None: it ended well."""


def run(script: Path, limit_s: float) -> Ran:
    """What it prints on stderr is shown as it comes. Whatever it has started ends with it."""
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=HERE.parent,
        start_new_session=True,
    )
    failure = None
    try:
        said, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        failure = f"{script.name} had not ended after {limit_s / 60:g} minutes"
        _end(process)
        said, _ = process.communicate()
    finally:
        _end(process)
    lines = results(said)
    if process.returncode and failure is None:
        failure = f"{script.name} ended with {process.returncode}; what it said is above"
    elif not lines and failure is None:
        failure = f"{script.name} printed no result"
    return Ran(lines, failure)


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def results(said: str) -> list[dict[str, Any]]:
    """The whole lines of a script's output that are results."""
    whole = [line for line in said.splitlines(keepends=True) if line.endswith("\n")]
    lines = [json.loads(line) for line in whole if line.startswith('{"bench"')]
    assert all(set(line) == KEYS for line in lines), f"a result has other keys than {KEYS}"
    return lines


def shown(details: dict[str, Any]) -> str:
    """In words; that the machine was busy comes first."""
    busy = [] if details.get("quiet", True) else ["NOT QUIET"]
    plain = {k: v for k, v in details.items() if k not in ("quiet", "peak_gib", "cpu", "isa", "cores")}
    return "; ".join([*busy, *(f"{k} {_short(v)}" for k, v in plain.items())])


def _short(value: Any) -> str:
    match value:
        case float():
            return f"{value:.3g}"
        case list():
            return ", ".join(_short(v) for v in value)
        case dict():
            return ", ".join(f"{k} {_short(v)}" for k, v in value.items())
    return str(value)


def table(lines: list[dict[str, Any]], wants: dict[str, Any]) -> Table:
    """One row a result."""
    made = Table("bench", "ratio", "want", "details", "peak GiB")
    for line in lines:
        name, details = line["bench"], line["details"]
        wanted = wants.get(name)
        made.add_row(
            name,
            f"{line['ratio']:.2f}",
            str(details.get("want", "" if wanted is None else wanted)),
            shown(details),
            _short(details.get("peak_gib", "")),
        )
    return made


def main() -> None:
    """Exit 2 with one line when there is no such benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--only", metavar="NAME", help="run this one, keep the results of the others")
    parser.add_argument("--list", action="store_true", help="names and about how long each takes")
    asked = parser.parse_args()
    found = scripts()
    if asked.only and asked.only not in found:
        print(f"no benchmark {asked.only!r}; there are {', '.join(found)}", file=sys.stderr)
        raise SystemExit(2)
    if asked.list:
        for name, (_, constants) in found.items():
            print(f"{name:20} about {constants['MINUTES']} min")
        return
    if failed := run_all({asked.only: found[asked.only]} if asked.only else found, RESULTS):
        print("failed: " + "; ".join(failed), file=sys.stderr)
        raise SystemExit(1)


def run_all(found: dict[str, tuple[Path, dict[str, Any]]], path: Path) -> list[str]:
    """Results in `path` and in a table; returns what went wrong, one sentence a script."""
    ran: list[dict[str, Any]] = []
    failed = []
    for name, (script, constants) in found.items():
        print(f"== {name}, about {constants['MINUTES']} min", file=sys.stderr, flush=True)
        done = run(script, 60 * max(10, 4 * constants["MINUTES"]))
        if done.lines:
            write(path, kept(read(path), done.lines, name))
            ran += done.lines
        if done.failure:
            print(f"{name}: {done.failure}", file=sys.stderr, flush=True)
            failed.append(done.failure)
    width = None if sys.stdout.isatty() else int(os.environ.get("COLUMNS", "150"))
    wants = {name: constants.get("WANT") for name, (_, constants) in found.items()}
    Console(width=width).print(table(ran, wants))
    return failed


if __name__ == "__main__":
    main()
