"""A side of a benchmark: one JSON line of work on stdin, one of results on stdout. Needs nothing of strop."""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO


def take_stdout() -> TextIO:
    """Where answers go; what libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def requests() -> Iterator[dict[str, Any]]:
    """Until the other end closes."""
    for line in iter(sys.stdin.readline, ""):
        yield json.loads(line)


def answer(to: TextIO, **result: Any) -> None:
    """With the peak memory of this process added."""
    to.write(json.dumps({**result, "peak_gib": peak_gib()}) + "\n")
    to.flush()


def peak_gib() -> float:
    """The most memory that this process has taken."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 2**20


def settings() -> dict[str, Any]:
    """As the benchmark gave them."""
    return dict(json.loads(sys.argv[1]))
