import json
import os
import socket
import subprocess
import sys

import pytest

from strop.errors import ConfigError
from strop.store.lock import drop_lock, take_lock


def test_a_second_writer_is_refused_by_name(tmp_path):
    take_lock(tmp_path)
    with pytest.raises(ConfigError) as error:
        take_lock(tmp_path)
    assert str(error.value) == (
        f'store.dir = "{tmp_path}" is being written by process {os.getpid()} on {socket.gethostname()}; '
        f"end it first, or, if that machine is gone, delete {tmp_path}/.lock"
    )


def test_a_lock_given_up_can_be_taken(tmp_path):
    take_lock(tmp_path)
    drop_lock(tmp_path)
    take_lock(tmp_path)


def test_the_lock_of_a_killed_process_does_not_count(tmp_path):
    code = "\n".join(
        [
            "import os, pathlib",
            "from strop.store.lock import take_lock",
            f"take_lock(pathlib.Path({str(tmp_path)!r}))",
            "os.kill(os.getpid(), 9)",
        ]
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet reaped
    assert json.loads((tmp_path / ".lock").read_text())["pid"] == process.pid
    take_lock(tmp_path)
    process.wait()


def test_the_lock_of_a_reused_process_id_does_not_count(tmp_path):
    take_lock(tmp_path)
    holder = json.loads((tmp_path / ".lock").read_text())
    (tmp_path / ".lock").write_text(json.dumps({**holder, "process_started": "1"}))
    take_lock(tmp_path)


def test_a_lock_of_another_machine_counts(tmp_path):
    (tmp_path / ".lock").write_text(json.dumps({"pid": 1, "host": "elsewhere", "process_started": "1"}))
    with pytest.raises(ConfigError, match="is being written by process 1 on elsewhere"):
        take_lock(tmp_path)
