"""What a run came to: how it ended, its held-out means, how fast it learned, and what it took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strop.store.reader import RunReader
from strop.telemetry.learning_curve import Point, learning_curve, steps_to


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Records of one data set, as in `eval/results.jsonl`."""

    start: Mapping[str, Any] | None
    """Before the first step; None when it was not evaluated then."""
    end: Mapping[str, Any] | None
    """The last one after that."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of a run that may have ended in any way, or may still go on."""

    status: str
    """`finished`, `interrupted`, `failed`; `unfinished` while it runs and after a kill."""
    steps: int
    curve: Sequence[Point]
    held_out: Mapping[str, HeldOut]
    """By data set, in the order of evaluation."""
    tokens: float | None
    """Drawn, also for dropped groups; None where no policy draws any."""
    wall_s: float | None
    """Over all resumes. This and the peak are known when the run has ended."""
    peak_gib: float | None

    @property
    def steps_text(self) -> str:
        """`75`, or `12, interrupted`."""
        return str(self.steps) if self.status == "finished" else f"{self.steps}, {self.status}"

    def took(self, level: float) -> list[tuple[str, str]]:
        """What it is called → how much of it: the columns, or rows, that any comparison of runs has."""
        return [
            (f"steps to {level:g}", number(steps_to(self.curve, level), "d")),
            ("tokens drawn", number(self.tokens, ",.0f")),
            ("wall s", number(self.wall_s, ",.0f")),
            ("peak GiB", number(self.peak_gib, ".2f")),
        ]


def outcome_of(run: RunReader) -> Outcome:
    """Read from its directory."""
    summary, records = run.summary(), run.metrics()
    ended = summary or {}
    drawn = [record["rollout/tokens"] for record in records if "rollout/tokens" in record]
    return Outcome(
        status=ended.get("status", "unfinished"),
        steps=ended.get("steps", len(records)),
        curve=learning_curve(records),
        held_out=_held_out(run.evals()),
        tokens=sum(drawn) if drawn else None,
        wall_s=ended.get("wall_s"),
        peak_gib=ended.get("peak_rss_gib"),
    )


def number(value: float | None, spec: str) -> str:
    """`value` in the form of `spec`; a dash for None."""
    return "–" if value is None else format(value, spec)


def _held_out(records: Sequence[Mapping[str, Any]]) -> dict[str, HeldOut]:
    found: dict[str, HeldOut] = {}
    for record in records:
        known = found.get(record["dataset"], HeldOut(None, None))
        is_start = record["step"] == 0
        found[record["dataset"]] = HeldOut(record, known.end) if is_start else HeldOut(known.start, record)
    return found
