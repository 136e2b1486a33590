"""Processes that answer one question at a time: one that hangs or breaks its process harms nothing else."""

import asyncio
import json
import signal
import struct
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strop.errors import RewardFailed, first_line

_OF_THE_QUESTION = {signal.SIGXCPU, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE}
"""Out of processor time, or broken by what it computed. SIGKILL is not among them: somebody else sends it."""


@dataclass
class Workers:
    """At most `num` processes of `script`, started when first needed, replaced when they end.

    A process says that it is ready, or what is wrong, before it is asked anything. It ends when its stdin
    does, so none outlives this one, however this one ends. After `close` a question starts a new one.
    """

    script: Path
    what: str
    """Opens every message."""
    num: int = 2
    _idle: list[Process] = field(init=False, default_factory=list, repr=False)
    _places: asyncio.Semaphore = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.num)

    async def ask(self, question: Mapping[str, Any]) -> dict[str, Any] | None:
        """The reply; None when the question itself ended the process.

        Raises RewardFailed when the process cannot start or is ended from outside. A call that is cancelled
        ends the process that it waits for.
        """
        async with self._places:
            process = self._idle.pop() if self._idle else await self._start()
            keeps = False
            try:
                reply = await _exchange(process, question)
                keeps = not reply["last"]
            except (asyncio.IncompleteReadError, ConnectionError):
                if -await process.wait() in _OF_THE_QUESTION:
                    return None
                raise RewardFailed(f"{self.what}: {await _last_words(process)}") from None
            finally:
                if keeps:
                    self._idle.append(process)
                else:
                    await _end(process)
            return reply

    async def close(self) -> None:
        """End the processes; none may be at work."""
        while self._idle:
            await _end(self._idle.pop())

    async def _start(self) -> Process:
        # Equal runs must answer equally: the order of sets in the process is fixed. -P: a file in the working
        # directory must not take the place of a library.
        command = ("/usr/bin/env", "PYTHONHASHSEED=0", sys.executable, "-P", "-B", str(self.script))
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        is_ready = False
        try:
            greeting = await _read(process)
            if "error" in greeting:
                raise RewardFailed(f"{self.what}: {first_line(greeting['error'])}")
            is_ready = True
        except asyncio.IncompleteReadError:
            await process.wait()
            raise RewardFailed(f"{self.what} does not start: {await _last_words(process)}") from None
        finally:
            if not is_ready:
                await _end(process)
        return process


async def _exchange(process: Process, question: Mapping[str, Any]) -> dict[str, Any]:
    assert process.stdin is not None
    text = json.dumps(question).encode()
    process.stdin.write(struct.pack(">I", len(text)) + text)
    await process.stdin.drain()
    return await _read(process)


async def _read(process: Process) -> dict[str, Any]:
    assert process.stdout is not None
    (size,) = struct.unpack(">I", await process.stdout.readexactly(4))
    reply: dict[str, Any] = json.loads(await process.stdout.readexactly(size))
    return reply


async def _end(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


async def _last_words(process: Process) -> str:
    """How a process ended, with the last line it wrote to stderr."""
    assert process.stderr is not None
    said = (await process.stderr.read()).decode(errors="replace").strip()
    code = process.returncode
    ended = f"ended with code {code}" if code is None or code >= 0 else f"was ended by signal {-code}"
    return f"its process {ended}" + (f": {first_line(said.splitlines()[-1])}" if said else "")
