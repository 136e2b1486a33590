"""The ledger: what became of every group. Issued = trained + dropped + pending, or something was lost.

One line an event in `ledger.jsonl`. A group is issued once, and then trained or dropped once; `finished`
(its samples are complete) lies between and closes nothing.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from strop.store.jsonl import Log, read_log


class Event(StrEnum):
    """What happened to a group."""

    ISSUED = "issued"
    FINISHED = "finished"
    TRAINED = "trained"
    DROPPED = "dropped"
    BASELINE = "baseline"
    """A reply that its samples are compared with, itself never trained; closes nothing."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of one group."""

    step: int
    group: int
    prompt: str
    event: Event
    reason: str = ""
    """Why it was dropped; empty otherwise."""
    samples: list[int] = field(default_factory=list)
    """`Sample.index` of the samples concerned."""


@dataclass(frozen=True, slots=True)
class Balance:
    """The books of a run, in groups."""

    issued: int
    trained: int
    dropped: int
    pending: int
    """Issued, and neither trained nor dropped yet."""
    reasons: dict[str, int]
    """Dropped groups by reason."""
    faults: list[str]
    """One line for each event that breaks the books; empty when they balance."""

    @property
    def is_balanced(self) -> bool:
        return not self.faults and self.issued == self.trained + self.dropped + self.pending


class Ledger:
    """Entries appended to a log."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def record(self, entry: Entry) -> None:
        """Write one line."""
        self._log.append(
            {
                "step": entry.step,
                "group": entry.group,
                "prompt": entry.prompt,
                "event": entry.event,
                "reason": entry.reason,
                "samples": entry.samples,
            }
        )


def read_ledger(path: Path) -> list[Entry]:
    """Every entry, in order."""
    return [Entry(**{**row, "event": Event(row["event"])}) for row in read_log(path)]


def audit(entries: Iterable[Entry]) -> Balance:
    """Balance the books. Each fault is named: an event before the group was issued, a second ending, a
    sample trained twice."""
    issued: set[int] = set()
    ended: dict[int, Event] = {}
    trained_samples: set[int] = set()
    reasons: Counter[str] = Counter()
    faults: list[str] = []
    for entry in entries:
        fault = _fault(entry, issued, ended)
        if fault:
            faults.append(f"group {entry.group} (prompt {entry.prompt}, step {entry.step}): {fault}")
            continue
        if entry.event is Event.ISSUED:
            issued.add(entry.group)
        if entry.event in (Event.TRAINED, Event.DROPPED):
            ended[entry.group] = entry.event
        if entry.event is Event.DROPPED:
            reasons[entry.reason] += 1
        if entry.event is Event.TRAINED:
            again = sorted(trained_samples.intersection(entry.samples))
            faults += [f"sample {index} (group {entry.group}): trained twice" for index in again]
            trained_samples.update(entry.samples)
    ends = Counter(ended.values())
    return Balance(
        issued=len(issued),
        trained=ends[Event.TRAINED],
        dropped=ends[Event.DROPPED],
        pending=len(issued - ended.keys()),
        reasons=dict(reasons),
        faults=faults,
    )


def _fault(entry: Entry, issued: set[int], ended: dict[int, Event]) -> str | None:
    if entry.event is Event.ISSUED:
        return "issued twice" if entry.group in issued else None
    if entry.group not in issued:
        return f"{entry.event} but never issued"
    if entry.group in ended:
        return f"{entry.event} after it was {ended[entry.group]}"
    return None
