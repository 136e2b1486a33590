"""Whether the machine was quiet: what others computed while a benchmark ran. Needs no torch, as `startup.py`
must not load it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import getpid
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Cpu:
    """Ticks since the machine started."""

    busy: int
    stolen: int
    total: int
    ours: int
    """Of `busy`: this process, those below it that live, and those below it that have ended."""


def _cpu() -> Cpu:
    user, nice, system, idle, iowait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().split()[1:9]
    )
    busy = user + nice + system + irq + softirq
    return Cpu(busy, steal, busy + idle + iowait + steal, _ours())


def _ours() -> int:
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it ended while we looked
            continue
        pid = int(path.parent.name)
        parents[pid] = int(fields[1])
        ticks[pid] = sum(
            map(int, fields[11:15])
        )  # user and system, its own and of the children it has reaped
    family = {getpid()}
    while grown := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= grown
    return sum(ticks.get(pid, 0) for pid in family)


def _others(start: Cpu, end: Cpu, *, ours: int = 0) -> float:
    """Share of the machine's time that neither we (`ours` ticks) nor other machines (stolen) took."""
    return max(0, end.busy - start.busy - ours) / max(1, end.total - start.total)


def _idle_use() -> float:
    """Share of the machine that is busy while this process and its sides wait: one that spins is seen."""
    before = _cpu()
    time.sleep(1)
    return _others(before, _cpu())


@contextmanager
def watched() -> Iterator[dict[str, Any]]:
    """Yields what is filled in at the end: `quiet`, and what it follows from, of the whole time and of a
    second before and after it. Sides must be loaded, and waiting."""
    found: dict[str, Any] = {}
    before, start = _idle_use(), _cpu()
    yield found
    end = _cpu()
    stolen = (end.stolen - start.stolen) / max(1, end.total - start.total)
    others = max(before, _others(start, end, ours=end.ours - start.ours), _idle_use())
    found |= {"others_busy": round(others, 3), "stolen": round(stolen, 3)}
    found["quiet"] = others < 0.1 and stolen < 0.05
