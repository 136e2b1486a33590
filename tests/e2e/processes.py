"""The `strop` command in processes of their own: real ones that can be killed, forked from a warm one.

A forked process skips the seconds that importing torch takes; all else about it is as from a shell.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path

PRELOAD = [
    "pytest",
    "pyarrow.parquet",
    "strop.cli.show",
    "strop.cli.train",
    "strop.run",
    "strop.telemetry.console",
]
DEADLINE_S = 180.0


@dataclass(frozen=True)
class Ended:
    """How a command ended; `code` is −9 after kill -9."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Running:
    """A command that goes on; `out` and `err` are files that grow."""

    process: ForkServerProcess
    out: Path
    err: Path

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def wait(self, *, within_s: float = DEADLINE_S) -> Ended:
        """Until it ends."""
        self.process.join(within_s)
        if self.process.exitcode is None:
            self.process.kill()
            raise TimeoutError(f"still running after {within_s} s: {self.out.read_text()}")
        return Ended(self.process.exitcode, self.out.read_text(), self.err.read_text())

    def wait_for(self, is_so: Callable[[], bool], what: str) -> None:
        """Until `is_so()`; fails when the command ends before, or after a minute."""
        deadline = time.monotonic() + DEADLINE_S
        while not is_so():
            if not self.process.is_alive() or time.monotonic() > deadline:
                self.process.kill()
                raise AssertionError(f"not reached: {what}\n{self.out.read_text()}{self.err.read_text()}")
            time.sleep(0.005)


def warm_up() -> None:
    """Begin to import, in the process from which the others are forked; returns at once."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOAD)
    forkserver.ensure_running()


@dataclass(frozen=True)
class Shell:
    """Starts commands with one `STROP_HOME`; their output goes to files in `logs`."""

    home: Path
    logs: Path

    def start(
        self,
        *argv: str | Path,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        first: Callable[[], None] | None = None,
    ) -> Running:
        """Begin `strop ARGV`. `first`, a module's function, is called in the new process before it."""
        number = len(list(self.logs.glob("*.out")))
        out, err = self.logs / f"{number}.out", self.logs / f"{number}.err"
        out.touch()
        err.touch()
        context = multiprocessing.get_context("forkserver")
        environment = {"STROP_HOME": str(self.home), **(env or {})}
        work = (out, err, cwd or self.logs, environment, first, [str(word) for word in argv])
        process = context.Process(target=_child, args=work, daemon=True)
        process.start()
        return Running(process, out, err)

    def run(
        self,
        *argv: str | Path,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        first: Callable[[], None] | None = None,
    ) -> Ended:
        """`strop ARGV`, to its end."""
        return self.start(*argv, cwd=cwd, env=env, first=first).wait()


def _child(
    out: Path,
    err: Path,
    cwd: Path,
    env: dict[str, str],
    first: Callable[[], None] | None,
    argv: list[str],
) -> None:
    for stream, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), stream)
    os.chdir(cwd)
    os.environ.update(env)
    if first is not None:
        first()
    from strop.cli.main import main

    sys.exit(main(argv))
