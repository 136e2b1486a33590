"""Runs in a table, one row a run: where their configurations differ, what they reached and what it took."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from strop.cli.outcome import HeldOut, Outcome, number
from strop.config.toml_text import write_value
from strop.store.config_changes import FREE_TO_CHANGE, differing_keys, flat
from strop.store.reader import RunReader
from strop.telemetry.learning_curve import WINDOW
from strop.telemetry.printable import one_line

_KEYS = 3
"""Keys that have a column; the others are counted."""
_DATASETS = 2
"""Held-out sets that have columns; the others are named."""
_NAMED = 6
_LABELS = ("name", "store.dir")
"""Keys that say which run it is, and not what it does."""
_CELL = 24
"""Characters of a value; of a longer one the end, where paths differ."""
_FOLLOWS = ("default", "batch identity", "algo.type = ")
"""How the origin of what nobody set begins. `config.presets` knows too, but loads the tree of all keys: that
takes as long as all else here."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A table as text, whatever it will be shown as."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    """One a run, in the order given."""
    remarks: Sequence[str]
    """What the columns leave open, a line each."""


@dataclass(frozen=True, slots=True)
class Differing:
    """Keys whose values are not the same in all runs."""

    shown: Sequence[str]
    others: Sequence[str]
    """In alphabetical order: most follow from those that are shown; of some, no cell shows the difference."""


def compare_runs(
    runs: Sequence[RunReader], outcomes: Sequence[Outcome], *, names: Sequence[str], level: float
) -> Comparison:
    """Three sequences of one length, and the training reward that the runs were to reach."""
    configs = [run.config() for run in runs]
    keys = differing(configs)
    sets = list(dict.fromkeys(name for outcome in outcomes for name in outcome.held_out))
    shown = sets[:_DATASETS]
    values = [flat(config["values"]) for config in configs]
    return Comparison(
        [
            "run",
            *keys.shown,
            *(f"{name} at {when}" for name in shown for when in ("start", "end")),
            "steps",
            *(title for title, _ in outcomes[0].took(level)),
        ],
        [
            [
                name,
                *(_value(own, key) for key in keys.shown),
                *_means(outcome, shown),
                outcome.steps_text,
                *(text for _, text in outcome.took(level)),
            ]
            for name, own, outcome in zip(names, values, outcomes, strict=True)
        ],
        [*_about_numbers(level, shown), *_about_rest(keys, sets[_DATASETS:])],
    )


def differing(configs: Sequence[Mapping[str, Any]]) -> Differing:
    """Of contents of `config.json`.

    Shown are keys that were set, by a file or a flag, before what follows from those; what changes the result
    of a step before what does not; of these the ones with most values; of these the shallower ones.
    """
    first, *rest = [config["values"] for config in configs]
    unlike = {key for other in rest for key in differing_keys(first, other)} - {*_LABELS}
    given = {key for key in unlike if any(_is_given(config["origins"], key) for config in configs)}
    tables = [flat(config["values"]) for config in configs]

    cells = {key: {_value(table, key) for table in tables} for key in given or unlike}

    def rank(key: str) -> tuple[bool, int, int, str]:
        return key.startswith(FREE_TO_CHANGE), -len(cells[key]), key.count("."), key

    told = [
        key
        for key, texts in cells.items()
        if len(texts) > 1 and not any(_holds_tables(table.get(key)) for table in tables)
    ]
    shown = sorted(told, key=rank)[:_KEYS]
    return Differing(shown, sorted(unlike - {*shown}))


def short_names(runs: Sequence[RunReader]) -> list[str]:
    """The last part of each path where that tells them apart, else the paths as given."""
    last = [run.path.name for run in runs]
    return last if all(last) and len({*last}) == len(last) else [str(run.path) for run in runs]


def as_table(comparison: Comparison) -> Table:
    """For a terminal."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column, title in enumerate(comparison.header):
        table.add_column(
            Text(title),
            style="" if column else "bold",
            justify="right" if column else "left",
            overflow="fold",
        )
    for row in comparison.rows:
        table.add_row(*(Text(one_line(cell, 200)) for cell in row))
    return table


def _is_given(origins: Mapping[str, str], key: str) -> bool:
    """A list of tables has an origin for each key in it."""
    own = [origin for name, origin in origins.items() if name == key or name.startswith(f"{key}.")]
    return not all(origin.startswith(_FOLLOWS) for origin in own)


def _holds_tables(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(element, dict) for element in value)


def _value(table: Mapping[str, Any], key: str) -> str:
    """A dash for what is unset, and for a key that a run does not have."""
    value = table.get(key)
    if value is None:
        return "–"
    text = one_line(value if isinstance(value, str) else write_value(value), 1000)
    return text if len(text) <= _CELL else f"…{text[1 - _CELL :]}"


def _means(outcome: Outcome, datasets: Iterable[str]) -> list[str]:
    cells = []
    for dataset in datasets:
        held_out = outcome.held_out.get(dataset, HeldOut(None, None))
        cells += [_mean(held_out.start), _mean(held_out.end) + _when(held_out.end, outcome)]
    return cells


def _mean(record: Mapping[str, Any] | None) -> str:
    """`0.916 (0.876 to 0.944)`."""
    if record is None or record["mean"] is None:
        return "–"
    low, high = record.get("low"), record.get("high")
    interval = "" if low is None or high is None else f" ({_three(low)} to {_three(high)})"
    return _three(record["mean"]) + interval


def _three(value: float) -> str:
    return number(value, "z.3f")  # z: the low end of a mean near 0 would be -0.000


def _when(record: Mapping[str, Any] | None, outcome: Outcome) -> str:
    return "" if record is None or record["step"] == outcome.steps else f" after {record['step']}"


def _about_numbers(level: float, datasets: Sequence[str]) -> list[str]:
    intervals = [f"{' and '.join(datasets)}: held-out mean with its 95 % interval"] if datasets else []
    return [
        *intervals,
        f"steps to {level:g}: until the mean training reward of the last {WINDOW} steps was that or more",
    ]


def _about_rest(keys: Differing, datasets: Sequence[str]) -> list[str]:
    lines = []
    if keys.others:
        more = f" and {len(keys.others) - _NAMED} more" if len(keys.others) > _NAMED else ""
        count = "1 other key differs" if len(keys.others) == 1 else f"{len(keys.others)} other keys differ"
        lines.append(f"{count}: {', '.join(keys.others[:_NAMED])}{more}")
    if datasets:
        lines.append(f"held-out sets that are not shown: {', '.join(datasets)}")
    return lines
