"""Results of held-out sets as a table for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from strop.telemetry.passes import told


def results_table(records: Sequence[Mapping[str, Any]]) -> Table:
    """One row a data set; records as in results.jsonl."""
    ks = sorted({k for record in records for k in told(record)})
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("data set", style="bold", no_wrap=True)
    for header in ("mean", "95 %", *(f"pass@{k}" for k in ks), "prompts", "failed", "cut", "tokens"):
        table.add_column(header, justify="right", no_wrap=True)
    for record in records:
        table.add_row(*map(Text, _row(record, ks)))
    return table


def remarks(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the columns mean where they do not say it."""
    methods = {
        "wilson": "Wilson's interval of a share",
        "normal": "normal over prompts, whose samples are not independent",
    }
    used = dict.fromkeys(record["interval"] for record in records if record["interval"])
    lines = [f"95 %: {'; '.join(methods[name] for name in used)}"] if used else []
    lines.append("cut: share of replies that hit the maximum length; tokens: their mean length")
    for record in records:
        left_out = {
            name.rpartition("_")[2]: n for name, n in record.items() if name.startswith("pass_left_out_")
        }
        shown = ", ".join(f"{n} from pass@{k}" for k, n in left_out.items())
        if shown:
            lines.append(f"{record['dataset']}: prompts left out, as too many samples failed: {shown}")
    return lines


def _row(record: Mapping[str, Any], ks: Sequence[int]) -> list[str]:
    low, high, passing = record["low"], record["high"], told(record)
    prompts = f"{record['n']}" if record["n"] == record["prompts"] else f"{record['n']}/{record['prompts']}"
    return [
        record["dataset"],
        _number(record["mean"], ".4f"),
        "–" if low is None else f"{low:.4f} to {high:.4f}",
        *(_number(passing.get(k), ".4f") for k in ks),
        prompts,
        str(record["failed"]),
        _number(record["truncated_share"], ".3f"),
        _number(record["response_tokens"], ".1f"),
    ]


def _number(value: float | None, spec: str) -> str:
    return "–" if value is None else format(value, spec)
