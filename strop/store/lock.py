"""One writer a run directory. A lock that a dead process left behind does not count."""

import fcntl
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path

from strop.errors import ConfigError
from strop.store.durable import writing

_NAME = ".lock"


def take_lock(directory: Path) -> None:
    """Make this process the writer of `directory`; ConfigError when a live one already is."""
    with _exclusively(directory) as file:
        text = file.read()
        holder = json.loads(text) if text else None
        if holder is not None and _is_alive(holder):
            raise ConfigError(
                f'store.dir = "{directory}" is being written by process {holder["pid"]} on {holder["host"]}; '
                f"end it first, or, if that machine is gone, delete {directory / _NAME}"
            )
        file.truncate(0)
        file.write(json.dumps(_identity()).encode())


def drop_lock(directory: Path) -> None:
    """Give up what `take_lock` took."""
    with _exclusively(directory) as file:
        file.truncate(0)


@contextmanager
def _exclusively(directory: Path) -> Iterator[BufferedRandom]:
    # The kernel's lock is held only while the file is read and rewritten: a forked child would inherit it
    # and could keep it beyond the life of the run.
    with writing(directory / _NAME), (directory / _NAME).open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield file


def _identity() -> dict[str, object]:
    return {"pid": os.getpid(), "host": socket.gethostname(), "process_started": _started(os.getpid())}


def _is_alive(holder: dict[str, object]) -> bool:
    """Whether the very process that took the lock still runs; of another machine, nobody can tell: yes."""
    if holder["host"] != socket.gethostname():
        return True
    return _started(int(str(holder["pid"]))) == holder["process_started"]


def _started(pid: int) -> str | None:
    """When a process began, as text to compare, so that a reused id is told apart; None if it has ended."""
    if not Path("/proc/self/stat").exists():  # macOS
        found = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True)
        return found.stdout.strip() or None
    try:
        # The second field is the program's name in parentheses and may hold spaces.
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in "ZX" else fields[18]
