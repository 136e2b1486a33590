"""What a run finds itself on. Nothing is imported for it, and nothing but text files is read."""

import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_DECISIVE = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "sve", "bf16")
"""Extensions for which matrix libraries have kernels of their own, which round differently."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Part of `config.json`: results are equal bit for bit only on one machine and thread count."""

    cores: int
    """That this process may keep busy: its affinity, cut to the container's share of processor time."""
    processor: str
    instruction_set: tuple[str, ...]
    """Those of avx2, avx512f, avx512_bf16, amx_bf16, sve, bf16 that it has."""

    @classmethod
    def here(cls) -> "Machine":
        """This machine."""
        facts = cpu_facts()
        has = {*facts.get("flags", "").split(), *facts.get("Features", "").split()}
        return cls(
            cores=usable_cores(_affinity(), cpu_quotas()),
            processor=facts.get("model name") or platform.processor() or platform.machine(),
            instruction_set=tuple(name for name in _DECISIVE if name in has),
        )

    def as_json(self) -> dict[str, Any]:
        """For `config.json`."""
        return {**asdict(self), "instruction_set": list(self.instruction_set)}


def usable_cores(affinity: int, quotas: Iterator[float]) -> int:
    """Whole cores, at least one. A core that is granted in part would hold up all others at each barrier."""
    return max(1, int(min([affinity, *quotas])))


def cpu_quotas(root: Path = Path("/")) -> Iterator[float]:
    """The limits on processor time of this process, in cores: of its control group and of those around it."""
    for group, is_first_version in control_groups("cpu", root):
        quota = _quota_v1(group) if is_first_version else _quota_v2(group)
        if quota is not None:
            yield quota


def control_groups(controller: str, root: Path = Path("/")) -> Iterator[tuple[Path, bool]]:
    """Directories of the control groups around this process that may limit `controller`, and whether each is
    of the first version of control groups."""
    for line in lines_of(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            for group in _from_the_root(root / "sys/fs/cgroup" / controllers, path):
                yield group, bool(controllers)


def cpu_facts(root: Path = Path("/")) -> dict[str, str]:
    """Of the first processor in /proc/cpuinfo; none where there is no such file (macOS)."""
    facts: dict[str, str] = {}
    for line in lines_of(root / "proc/cpuinfo"):
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    return facts


def _affinity() -> int:
    if sys.platform == "linux":
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return cores


def _from_the_root(mount: Path, path: str) -> Iterator[Path]:
    """Inside a container the path may be that of the host, which is not there: its own is the mount."""
    yield mount
    parts = Path(path).parts[1:]
    yield from (mount.joinpath(*parts[:end]) for end in range(1, len(parts) + 1))


def _quota_v1(group: Path) -> float | None:
    quota, period = lines_of(group / "cpu.cfs_quota_us"), lines_of(group / "cpu.cfs_period_us")
    return int(quota[0]) / int(period[0]) if quota and period and int(quota[0]) > 0 else None


def _quota_v2(group: Path) -> float | None:
    limit = lines_of(group / "cpu.max")
    quota, period = limit[0].split() if limit else ("max", "")
    return None if quota == "max" else int(quota) / int(period)


def lines_of(file: Path) -> list[str]:
    """Of a text file of the operating system; none where there is no such file."""
    return file.read_text().splitlines() if file.is_file() else []
