"""python -m benchmarks [--only NAME] [--list]: run the scripts of this folder, show a table, keep results.

A benchmark is a script with `NAME`, `bench()`, and, if it likes, `WANT` and `MINUTES`; run by itself it
prints its results, one JSON line each. Each runs in a process of its own.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
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


def run(name: str, script: Path) -> list[dict[str, Any]]:
    """Its results; what it says on the way goes to stderr as it comes."""
    print(f"== {name}", file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, cwd=HERE.parent)
    if done.returncode:
        raise SystemExit(f"{name}: {script.name} ended with {done.returncode}; what it said is above")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"bench"')]
    assert lines, f"{script} printed no result"
    assert all(set(line) == KEYS for line in lines), f"a result of {script} has other keys than {KEYS}"
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
            print(f"{name:20} about {constants.get('MINUTES', '?')} min")
        return
    wants = {name: constants.get("WANT") for name, (_, constants) in found.items()}
    ran: list[dict[str, Any]] = []
    for name in [asked.only] if asked.only else found:
        new = run(name, found[name][0])
        write(RESULTS, kept(read(RESULTS), new, name))
        ran += new
    Console(width=None if sys.stdout.isatty() else int(os.environ.get("COLUMNS", "150"))).print(
        table(ran, wants)
    )


if __name__ == "__main__":
    main()
