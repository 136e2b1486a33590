"""`Scorer`: calls a reward under a deadline, again after a failure, and never too many at once."""

import asyncio
import inspect
import math
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from strop.errors import RewardFailed, StropError, boundary, first_line
from strop.plugins import is_async
from strop.sample import Sample, Scores

T = TypeVar("T")

_BACKOFF_S = 0.1
_EXPECTED = "expected a finite number or Scores"


@dataclass
class Scorer:
    """A reward with what is around it: a deadline, retries, a limit on concurrency.

    A coroutine function is awaited, a plain `def` runs in a thread. A thread cannot be stopped: a call that
    is past its deadline keeps its place among the `concurrency` calls until it really ends, so retries never
    add threads; when every place is held so, scoring fails instead of waiting for ever.
    """

    fn: Callable[..., Any]
    name: str = field(kw_only=True)
    """As the run spells it, for messages."""
    timeout_s: float = field(kw_only=True)
    """For one call, from when it begins."""
    retries: int = field(kw_only=True)
    """Further calls after one that raised, timed out or returned something else than a number."""
    concurrency: int = field(kw_only=True)
    sleep: Callable[[float], Awaitable[object]] = field(kw_only=True, default=asyncio.sleep)
    """Waits between calls: 0.1 s, then twice as long each time."""
    _places: asyncio.Semaphore = field(init=False, repr=False)
    _num_overdue: int = field(init=False, default=0, repr=False)
    """Places held by threads past their deadline."""

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.concurrency)

    async def score(self, sample: Sample) -> Scores:
        """What the sample is worth: finite numbers. Raises RewardFailed after the last retry; a failure is
        never a reward of 0."""
        attempt = 0
        while True:
            try:
                return checked(await self._call(sample), self._what)
            except RewardFailed as failed:
                if attempt == self.retries:
                    raise RewardFailed(f"{failed} (calls: {attempt + 1})") from failed
            await self.sleep(_BACKOFF_S * 2**attempt)
            attempt += 1

    async def score_group(self, samples: Sequence[Sample]) -> list[Scores]:
        """What each sample of a group is worth, in order."""
        return await all_of(self.score(sample) for sample in samples)

    async def _call(self, sample: Sample) -> object:
        await self._take_place()
        thread = None if is_async(self.fn) else self._thread(sample)
        try:
            outcome = self.fn(sample) if thread is None else await self._ended(thread)
            return await self._awaited(outcome) if inspect.isawaitable(outcome) else outcome
        finally:
            self._leave_place(thread)

    def _thread(self, sample: Sample) -> asyncio.Future[object]:
        """Completes with what the call returned, or with the StropError that it raised."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[object] = loop.create_future()

        def work() -> None:
            try:
                with boundary(RewardFailed, self._what):
                    outcome: object = self.fn(sample)
            except StropError as failed:
                outcome = failed
            with suppress(RuntimeError):  # the run has ended and closed its loop: nobody asks any more
                loop.call_soon_threadsafe(ended.set_result, outcome)

        # A daemon of its own, not a pool's: a call that never ends must hold up neither others nor the exit.
        threading.Thread(target=work, daemon=True, name=self._what).start()
        return ended

    async def _ended(self, thread: asyncio.Future[object]) -> object:
        await asyncio.wait({thread}, timeout=self.timeout_s)
        if not thread.done():
            raise self._late()
        if isinstance(outcome := thread.result(), StropError):
            raise outcome
        return outcome

    async def _awaited(self, call: Awaitable[object]) -> object:
        try:
            async with asyncio.timeout(self.timeout_s):
                with boundary(RewardFailed, self._what):
                    return await call
        except TimeoutError as caught:
            raise self._late() from caught

    async def _take_place(self) -> None:
        """Waits as long as other calls go on; places whose threads are all overdue may never become free."""
        while True:
            if self._num_overdue == self.concurrency:
                raise RewardFailed(
                    f"{self._what}: all {self.concurrency} calls at once (reward.concurrency) "
                    f"are past {self.timeout_s:g} s and still running"
                )
            with suppress(TimeoutError):
                async with asyncio.timeout(self.timeout_s):
                    await self._places.acquire()
                    return

    def _leave_place(self, thread: asyncio.Future[object] | None) -> None:
        if thread is None or thread.done():
            self._places.release()
            return
        self._num_overdue += 1
        thread.add_done_callback(self._overdue_ended)

    def _overdue_ended(self, _: asyncio.Future[object]) -> None:
        self._num_overdue -= 1
        self._places.release()

    @property
    def _what(self) -> str:
        return f"reward {self.name}"

    def _late(self) -> RewardFailed:
        return RewardFailed(f"{self._what}: no answer after {self.timeout_s:g} s (reward.timeout_s)")


async def all_of(calls: Iterable[Awaitable[T]]) -> list[T]:
    """What each returned, in order, once all have ended; raises the first failure of them."""
    ended = await asyncio.gather(*calls, return_exceptions=True)
    returned: list[T] = []
    for outcome in ended:
        if isinstance(outcome, BaseException):
            raise outcome
        returned.append(outcome)
    return returned


def checked(returned: object, what: str) -> Scores:
    if isinstance(returned, Scores):
        named = {
            name: _finite(value, f"{what}: {name!r} of Scores") for name, value in returned.named.items()
        }
        return Scores(_finite(returned.value, f"{what}: Scores.value"), named)
    return Scores(_finite(returned, f"{what}: returned"))


def _finite(value: object, where: str) -> float:
    if not isinstance(value, Real | np.bool_):
        raise RewardFailed(f"{where} {type(value).__name__} {first_line(repr(value), 60)}; {_EXPECTED}")
    if not math.isfinite(value):
        raise RewardFailed(f"{where} {float(value)}; {_EXPECTED}")
    return float(value)
