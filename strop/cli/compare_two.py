"""Two runs side by side, a row for each thing in which they can be compared."""

from rich import box
from rich.console import Console as Terminal
from rich.table import Table
from rich.text import Text

from strop.store.config_changes import differing_keys, flat
from strop.store.reader import RunReader

_ROWS = 24
"""Steps in the table of rewards; of longer runs an even selection is shown."""


def print_two(out: Terminal, a: RunReader, b: RunReader, took: list[tuple[str, str, str]]) -> None:
    """How they ended and `took`; where their configurations differ; held-out means; rewards by step, of runs
    on given rows losses."""
    out.print(_table("", [("status", _status(a), _status(b)), *took], a, b))
    left, right = a.config()["values"], b.config()["values"]
    keys = [
        (key, str(flat(left).get(key, "–")), str(flat(right).get(key, "–")))
        for key in differing_keys(left, right)
        if key != "store.dir"
    ]
    _section(out, "configuration", keys, a, b)
    _section(out, "held-out mean", _eval_rows(a, b), a, b)
    records = [row for run in (a, b) for row in run.metrics()]
    is_given = bool(records) and all("reward/mean" not in row for row in records)
    title, metric = ("loss", "train/loss") if is_given else ("reward", "reward/mean")
    _section(out, title, _step_rows(a, b, metric), a, b)


def _section(out: Terminal, title: str, rows: list[tuple[str, str, str]], a: RunReader, b: RunReader) -> None:
    if rows:
        out.print()
        out.print(_table(title, rows, a, b))
    else:
        out.print(f"\n{title}: {'the same' if title == 'configuration' else 'none yet'}")


def _table(title: str, rows: list[tuple[str, str, str]], a: RunReader, b: RunReader) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(Text(title), style="bold", no_wrap=True)
    table.add_column(Text(str(a.path)), justify="right", overflow="fold")
    table.add_column(Text(str(b.path)), justify="right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _status(run: RunReader) -> str:
    summary = run.summary()
    if summary is None:
        return f"unfinished, {len(run.metrics())} steps"
    return f"{summary['status']}, {summary['steps']} steps"


def _eval_rows(a: RunReader, b: RunReader) -> list[tuple[str, str, str]]:
    left, right = ({(row["step"], row["dataset"]): row["mean"] for row in run.evals()} for run in (a, b))
    return [
        (
            f"{dataset}, after {step} steps",
            _number(left.get((step, dataset))),
            _number(right.get((step, dataset))),
        )
        for step, dataset in sorted(left.keys() | right.keys())
    ]


def _step_rows(a: RunReader, b: RunReader, metric: str) -> list[tuple[str, str, str]]:
    left, right = ({row["step"]: row.get(metric) for row in run.metrics()} for run in (a, b))
    steps = sorted(left.keys() | right.keys())
    if len(steps) > _ROWS:
        steps = [steps[i * (len(steps) - 1) // (_ROWS - 1)] for i in range(_ROWS)]
    return [(f"step {step}", _number(left.get(step)), _number(right.get(step))) for step in steps]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
