"""Memory of this machine, as the operating system tells it; nothing is imported for it."""

import os
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from strop.runtime.machine import control_groups, lines_of

GIB = 2**30


@dataclass(frozen=True, slots=True)
class MachineMemory:
    """In bytes."""

    total: int
    """What this process and its children may have at most: the machine's, cut to the container's share."""
    available: int
    """What is free now, or can be made so."""

    @classmethod
    def here(cls, root: Path = Path("/")) -> "MachineMemory":
        """This machine."""
        facts = _facts(root)
        total = facts["MemTotal"] if "MemTotal" in facts else _physical()
        total = min([total, *memory_limits(root)])
        return cls(total, min(total, facts.get("MemAvailable", total)))


def memory_limits(root: Path = Path("/")) -> Iterator[int]:
    """The limits on memory of this process, in bytes: of its control group and of those around it."""
    for group, is_first_version in control_groups("memory", root):
        file = group / ("memory.limit_in_bytes" if is_first_version else "memory.max")
        text = "".join(lines_of(file)[:1])
        if text.isdecimal():  # the second version says "max" for none, the first a number beyond any memory
            yield int(text)


def resident_bytes(root: Path = Path("/")) -> int:
    """Memory of this process that is in use; where /proc is not there (macOS), the most that it ever was."""
    return _of_this_process("VmRSS", root)


def peak_bytes(root: Path = Path("/")) -> int:
    """The most memory that this process ever had in use."""
    return _of_this_process("VmHWM", root)


def _of_this_process(name: str, root: Path) -> int:
    for line in lines_of(root / "proc/self/status"):
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    # Not the first choice: it is at least what the process had in use that started this one.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _facts(root: Path) -> dict[str, int]:
    """Of /proc/meminfo, in bytes; none where there is no such file."""
    named = (line.split(":") for line in lines_of(root / "proc/meminfo"))
    return {name: int(value.split()[0]) * 1024 for name, value in named}


def _physical() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
