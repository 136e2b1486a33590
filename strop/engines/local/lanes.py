"""Parts of one piece of work side by side, each in a thread that computes alone.

A team of compute threads meets after every operator, and on cores that are shared with others it waits for
the slower one each time; parts that meet once a step wait once.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import torch

MOST = 4
"""Lanes were measured on two cores; on many, the parts of a batch would be too small for fast products."""

X = TypeVar("X")
T = TypeVar("T")


class Lanes:
    """As many as the caller's team has threads; one, the team itself, where these are more than `MOST`."""

    def __init__(self) -> None:
        threads = torch.get_num_threads()
        self.num = threads if threads <= MOST else 1
        self._threads = ThreadPoolExecutor(self.num, thread_name_prefix="strop-lane")
        if self.num > 1:
            self._open()

    def _open(self) -> None:
        """Here, and not with the first work: torch gives the count that was set last to threads that first
        compute later, and nobody else should begin in between."""
        all_there = Barrier(self.num)

        def enter() -> None:
            torch.get_num_threads()  # a thread's first such call, or its first work, overrides what was set
            torch.set_num_threads(1)
            all_there.wait()

        for lane in [self._threads.submit(enter) for _ in range(self.num)]:
            lane.result()
        torch.set_num_threads(self.num)

    def each(self, work: Callable[[X], T], parts: Sequence[X]) -> list[T]:
        """Of every part, in order; where there is one lane, by the caller and its team. Raises what the first
        failed part raised, when all have ended."""
        if self.num == 1:
            return [work(part) for part in parts]
        begun = [self._threads.submit(work, part) for part in parts]
        for lane in begun:
            lane.exception()
        return [lane.result() for lane in begun]

    def close(self) -> None:
        """Ends the threads, when they have done what they have begun."""
        self._threads.shutdown(wait=False)
