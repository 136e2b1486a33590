"""How many cores a process may keep busy, and what its processor is."""

import json
import os

from strop.runtime.machine import Machine, cpu_facts, cpu_quotas, usable_cores


def write(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def quotas(root, files):
    write(root, files)
    return list(cpu_quotas(root))


def test_this_machine_is_told():
    here = Machine.here()
    assert 1 <= here.cores <= (os.cpu_count() or 1)
    assert here.processor
    assert json.loads(json.dumps(here.as_json()))["cores"] == here.cores


def test_a_container_is_given_its_share(tmp_path):
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}
    assert quotas(tmp_path, files) == [1.5]
    assert usable_cores(8, cpu_quotas(tmp_path)) == 1


def test_the_limits_of_all_groups_around_a_process_count(tmp_path):
    files = {
        "proc/self/cgroup": "0::/user.slice/shell\n",
        "sys/fs/cgroup/user.slice/cpu.max": "400000 100000\n",
        "sys/fs/cgroup/user.slice/shell/cpu.max": "max 100000\n",
    }
    assert quotas(tmp_path, files) == [4.0]


def test_the_first_version_of_control_groups_is_read_too(tmp_path):
    files = {
        "proc/self/cgroup": "3:memory:/docker/x\n2:cpu,cpuacct:/docker/x\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "200000\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    }
    assert quotas(tmp_path, files) == [2.0]


def test_no_limit_is_no_limit(tmp_path):
    assert quotas(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}) == []
    unlimited = {
        "proc/self/cgroup": "2:cpu:/\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    }
    assert quotas(tmp_path, unlimited) == []
    assert usable_cores(8, iter([])) == 8


def test_less_than_a_core_is_one():
    assert usable_cores(8, iter([0.5])) == 1


def test_a_system_without_proc_has_neither_limits_nor_facts(tmp_path):
    assert list(cpu_quotas(tmp_path)) == []
    assert cpu_facts(tmp_path) == {}


def test_the_first_processor_is_the_one_described(tmp_path):
    write(tmp_path, {"proc/cpuinfo": "model name\t: Good One\nflags\t\t: fpu avx2\n\nmodel name\t: Other\n"})
    assert cpu_facts(tmp_path)["model name"] == "Good One"
    assert cpu_facts(tmp_path)["flags"] == "fpu avx2"
