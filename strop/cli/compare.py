"""`strop compare`: two runs side by side, or whether they are the same run."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strop.cli.arguments import parse_arguments
from strop.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console as Terminal

    from strop.store.reader import RunReader

USAGE = """strop compare A B [--exact]

Configurations where they differ, held-out means, rewards by step.
--exact   exit 0 if and only if both finished, are the same step by step (times and speeds aside) and end in
          the same weights; else name the first difference and exit 1"""

_ROWS = 24
"""Steps in the table of rewards; of longer runs an even selection is shown."""


def main(argv: list[str]) -> int:
    """Print the comparison; 1 when `--exact` and they differ. ConfigError when either is not a run."""
    if not argv or "--help" in argv or "-h" in argv:
        print(USAGE)
        return 0
    arguments = parse_arguments(argv, "strop compare", switches=("--exact",))
    if len(arguments.names) != 2:
        raise ConfigError(f"strop compare: expected two run directories, got {len(arguments.names)}")
    from strop.cli.first_difference import first_difference
    from strop.store.reader import RunReader

    a, b = (RunReader(Path(name)) for name in arguments.names)
    if "--exact" in arguments.switches:
        difference = first_difference(a, b)
        print(
            difference
            or f"equal: {a.path} and {b.path}, {len(a.metrics())} steps and the weights they end in"
        )
        return 0 if difference is None else 1
    from strop.telemetry.terminal import is_coloured, open_terminal

    _print(open_terminal(sys.stdout, plain=not is_coloured(sys.stdout, os.environ)), a, b)
    return 0


def _print(out: "Terminal", a: "RunReader", b: "RunReader") -> None:
    from strop.store.config_changes import differing_keys, flat

    out.print(_table("", [("status", _status(a), _status(b))], a, b))
    left, right = a.config()["values"], b.config()["values"]
    keys = [
        (key, str(flat(left).get(key, "–")), str(flat(right).get(key, "–")))
        for key in differing_keys(left, right)
        if key != "store.dir"
    ]
    _section(out, "configuration", keys, a, b)
    _section(out, "held-out mean", _eval_rows(a, b), a, b)
    _section(out, "reward", _reward_rows(a, b), a, b)


def _section(
    out: "Terminal", title: str, rows: list[tuple[str, str, str]], a: "RunReader", b: "RunReader"
) -> None:
    if rows:
        out.print()
        out.print(_table(title, rows, a, b))
    else:
        out.print(f"\n{title}: {'the same' if title == 'configuration' else 'none yet'}")


def _table(title: str, rows: list[tuple[str, str, str]], a: "RunReader", b: "RunReader") -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(Text(title), style="bold", no_wrap=True)
    table.add_column(Text(str(a.path)), justify="right", overflow="fold")
    table.add_column(Text(str(b.path)), justify="right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _status(run: "RunReader") -> str:
    summary = run.summary()
    if summary is None:
        return f"unfinished, {len(run.metrics())} steps"
    return f"{summary['status']}, {summary['steps']} steps, {summary['wall_s']:.0f} s"


def _eval_rows(a: "RunReader", b: "RunReader") -> list[tuple[str, str, str]]:
    left, right = ({(row["step"], row["dataset"]): row["mean"] for row in run.evals()} for run in (a, b))
    return [
        (
            f"{dataset}, after {step} steps",
            _number(left.get((step, dataset))),
            _number(right.get((step, dataset))),
        )
        for step, dataset in sorted(left.keys() | right.keys())
    ]


def _reward_rows(a: "RunReader", b: "RunReader") -> list[tuple[str, str, str]]:
    left, right = ({row["step"]: row.get("reward/mean") for row in run.metrics()} for run in (a, b))
    steps = sorted(left.keys() | right.keys())
    if len(steps) > _ROWS:
        steps = [steps[i * (len(steps) - 1) // (_ROWS - 1)] for i in range(_ROWS)]
    return [(f"step {step}", _number(left.get(step)), _number(right.get(step))) for step in steps]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
