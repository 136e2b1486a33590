"""The process that compares answers as mathematics: a program of its own, which imports nothing of strop.

It reads questions from stdin and writes replies to stdout: 4 bytes of length, then JSON. Text is read as
LaTeX and never evaluated as Python. Whatever an answer makes the parser do ends here: the process may use
so much processor time a question and so much memory, writes no file, starts no program, and ends with its
parent.
"""

import json
import logging
import os
import resource
import struct
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, BinaryIO

CPU_S = 4
"""Processor seconds for one question; then the system ends the process."""
MEMORY = 1 << 30
"""Bytes of address space."""
SPENT = 512 << 20
"""Bytes resident at one time from which the process is not used again: the next answer must find room."""
_REFUSED = ("os.", "subprocess.", "socket.", "shutil.", "ctypes.", "pty.", "signal.pthread_kill")
_HARMLESS = ("os.listdir", "os.scandir", "os.walk", "os.fwalk")

Compare = Callable[[str, str, bool], bool]


def main() -> None:
    """Answer until stdin ends."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is not a reply
    logging.disable()
    warnings.simplefilter("ignore")
    try:
        compare = comparison()
    except ImportError as missing:
        _write(replies, {"error": f"ImportError: {missing}"})
        return
    if not compare("1+x", "x+1", False) or compare("1+x", "x+2", False):
        _write(replies, {"error": "it finds 1+x and x+1 different, or 1+x and x+2 equal"})
        return
    _confine()
    _write(replies, {"ready": True})
    serve(sys.stdin.buffer, replies, compare, before=_allow)


def serve(
    questions: BinaryIO, replies: BinaryIO, compare: Compare, *, before: Callable[[int], object]
) -> None:
    """Reply to each question; `before` is given the seconds that it may take."""
    while (question := _read(questions)) is not None:
        before(CPU_S)
        equal = compare(question["answer"], question["label"], question["reduced"])
        is_last = resident() > SPENT
        _write(replies, {"equal": equal, "last": is_last})
        if is_last:
            return


def comparison() -> Compare:
    """math-verify without its own time limit, which needs signals: the process is the limit."""
    from latex2sympy2_extended.sets import FiniteSet
    from math_verify import LatexExtractionConfig, parse, verify
    from sympy import Basic, Eq, Integer, Mul
    from sympy.core.random import seed

    boxed = [LatexExtractionConfig(boxed_match_priority=0)]

    def read(text: str) -> list[Any]:
        read: list[Any] = parse(rf"\boxed{{{text}}}", extraction_config=boxed, parsing_timeout=None)
        return read

    def is_worked_out(given: Any) -> bool:
        if isinstance(given, Eq):
            given = given.rhs
        if not isinstance(given, Basic) or isinstance(given, FiniteSet):
            return True
        is_percentage = isinstance(given, Mul) and len(given.args) == 2 and "1/100" in str(given.args[1])
        return given.is_Number or is_percentage or not given.is_number

    def compare(answer: str, label: str, reduced: bool) -> bool:
        seed(0)
        given, expected = read(answer), read(label)
        if not given or not expected:
            return False
        if reduced and isinstance(expected[0], Integer) and not is_worked_out(given[0]):
            return False
        return bool(verify(expected, given, timeout_seconds=None))

    return compare


def _confine() -> None:
    """Limits for good. Reading stays possible: libraries import parts of themselves late."""
    if sys.platform == "linux":
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        memory = MEMORY if most == resource.RLIM_INFINITY else min(MEMORY, most)
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        resource.setrlimit(limit, (0, 0))
    sys.addaudithook(refuse)


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Raises PermissionError for what no comparison needs to do."""
    writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    if event == "open":
        if arguments[2] & writes:
            raise PermissionError(f"a mathematical answer opened {arguments[0]!r} to write")
    elif event.startswith(_REFUSED) and event not in _HARMLESS:
        raise PermissionError(f"a mathematical answer led to {event}")


def _allow(seconds: int) -> None:
    """Until the process has used this many seconds more; the system counts whole ones."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    until = int(time.process_time()) + 1 + seconds
    resource.setrlimit(
        resource.RLIMIT_CPU, (until if most == resource.RLIM_INFINITY else min(until, most), most)
    )


def resident() -> int:
    """Most bytes that were in memory at one time, of this program alone."""
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # ru_maxrss is kept when one program replaces another: it would be that of the run which started this one.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def _read(questions: BinaryIO) -> dict[str, Any] | None:
    header = questions.read(4)
    if len(header) < 4:
        return None
    (size,) = struct.unpack(">I", header)
    question: dict[str, Any] = json.loads(questions.read(size))
    return question


def _write(replies: BinaryIO, reply: dict[str, Any]) -> None:
    text = json.dumps(reply).encode()
    replies.write(struct.pack(">I", len(text)) + text)
    replies.flush()


if __name__ == "__main__":
    main()
