"""`strop compare`: two runs side by side, more of them in a table, or whether two are the same run."""

import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from strop.cli.arguments import Arguments, parse_arguments
from strop.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console as Terminal

    from strop.cli.outcome import Outcome
    from strop.store.reader import RunReader

USAGE = """strop compare RUN RUN [RUN …] [--reach LEVEL] [--plot FILE.svg]
strop compare A B --exact

Two runs side by side: configurations where they differ, held-out means, rewards by step. Of more, a row a
run: keys in which they differ, held-out means, steps to a level, what it took. Runs need not have ended.
--reach LEVEL    count the steps until the mean training reward of the last 5 steps was LEVEL or more (0.8)
--plot FILE.svg  draw that mean by step, a line a run
--exact          exit 0 if and only if both finished, are the same step by step (times and speeds aside) and
                 end in the same weights; else name the first difference and exit 1"""

_LEVEL = 0.8


def main(argv: list[str]) -> int:
    """Print the comparison; 1 when `--exact` and they differ. ConfigError when one is not a run."""
    if not argv or "--help" in argv or "-h" in argv:
        print(USAGE)
        return 0
    arguments = parse_arguments(argv, "strop compare", flags=("--reach", "--plot"), switches=("--exact",))
    if len(arguments.names) < 2:
        raise ConfigError(f"strop compare: expected two run directories or more, got {len(arguments.names)}")
    is_exact = "--exact" in arguments.switches
    if is_exact:
        _check_exact(arguments)
    level, plot = _level(arguments.one("--reach")), _plot_path(arguments.one("--plot"))
    from strop.store.reader import RunReader

    runs = [RunReader(Path(name)) for name in arguments.names]
    return _say_whether_equal(*runs) if is_exact else _compare(runs, level, plot)


def _check_exact(arguments: Arguments) -> None:
    if len(arguments.names) > 2:
        raise ConfigError(f"--exact: says whether two runs are one, got {len(arguments.names)} runs")
    for flag, values in arguments.values.items():
        if values:
            raise ConfigError(f"--exact: only says whether two runs are one; leave out {flag}")


def _level(text: str | None) -> float:
    if text is None:
        return _LEVEL
    try:
        level = float(text)
    except ValueError:
        level = math.nan
    if not math.isfinite(level):
        raise ConfigError(f"--reach: expected a reward, such as 0.8, got {text}")
    return level


def _plot_path(text: str | None) -> Path | None:
    if text is None:
        return None
    path = Path(text)
    if path.suffix != ".svg":
        raise ConfigError(f"--plot: expected a file that ends in .svg, got {text}")
    if path.is_dir():
        raise ConfigError(f"--plot {text}: is a folder; name a file")
    if not path.parent.is_dir():
        raise ConfigError(f"--plot {text}: there is no folder {path.parent}; make it, or name another")
    return path


def _say_whether_equal(a: "RunReader", b: "RunReader") -> int:
    from strop.cli.first_difference import first_difference

    difference = first_difference(a, b)
    steps = len(a.metrics())
    print(difference or f"equal: {a.path} and {b.path}, {steps} steps and the weights they end in")
    return 0 if difference is None else 1


def _compare(runs: "Sequence[RunReader]", level: float, plot: Path | None) -> int:
    from strop.cli.outcome import outcome_of
    from strop.telemetry.terminal import is_coloured, open_terminal

    is_live = is_coloured(sys.stdout, os.environ)
    out = open_terminal(sys.stdout, plain=not is_live)
    outcomes = [outcome_of(run) for run in runs]
    if len(runs) == 2:
        from strop.cli.compare_two import print_two

        took = zip(*(outcome.took(level) for outcome in outcomes), strict=True)
        a, b = runs
        print_two(out, a, b, [(title, left, right) for (title, left), (_, right) in took])
    else:
        _print_many(out, runs, outcomes, level=level, is_live=is_live)
    if plot is not None:
        from strop.cli.compare_plot import write_plot

        out.print()
        for line in write_plot(plot, runs, outcomes, level=level):
            out.print(line, markup=False, soft_wrap=True)
    return 0


def _print_many(
    out: "Terminal",
    runs: "Sequence[RunReader]",
    outcomes: "Sequence[Outcome]",
    *,
    level: float,
    is_live: bool,
) -> None:
    from rich.measure import Measurement

    from strop.cli.compare_many import as_table, compare_runs, short_names

    comparison = compare_runs(runs, outcomes, names=short_names(runs), level=level)
    table = as_table(comparison)
    if not is_live:  # one run is one line for whatever reads it, however long
        out.width = max(out.width, Measurement.get(out, out.options.update(max_width=10_000), table).maximum)
    out.print(table)
    out.print()
    for remark in comparison.remarks:
        out.print(remark, markup=False)
