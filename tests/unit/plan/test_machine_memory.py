"""How much memory a process may have."""

import pytest

from strop.runtime.memory import MachineMemory, memory_limits, resident_bytes

GIB = 2**30
MEMINFO = "MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable: 4194304 kB\n"


def machine(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return MachineMemory.here(root)


def test_this_machine_has_memory_and_this_process_takes_some():
    here = MachineMemory.here()
    assert 0 < here.available <= here.total
    assert 10 * 2**20 < resident_bytes() < here.total


def test_without_a_limit_it_is_the_machines(tmp_path):
    assert machine(tmp_path, {"proc/meminfo": MEMINFO}) == MachineMemory(8 * GIB, 4 * GIB)


@pytest.mark.parametrize(
    ("cgroup", "file"),
    [
        ("0::/\n", "sys/fs/cgroup/memory.max"),
        ("0::/box\n", "sys/fs/cgroup/box/memory.max"),
        ("5:memory:/box\n", "sys/fs/cgroup/memory/box/memory.limit_in_bytes"),
    ],
)
def test_a_container_is_given_its_share(tmp_path, cgroup, file):
    files = {"proc/meminfo": MEMINFO, "proc/self/cgroup": cgroup, file: f"{2 * GIB}\n"}
    assert machine(tmp_path, files) == MachineMemory(2 * GIB, 2 * GIB)


def test_no_limit_is_no_limit(tmp_path):
    machine(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"})
    assert list(memory_limits(tmp_path)) == []
