"""`Scorer`: calls a reward under a deadline, again after a failure, and never too many at once."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from strop.errors import RewardFailed, StropError, boundary
from strop.plugins import is_async
from strop.rewards.base import RewardRefused
from strop.rewards.returned import Reading
from strop.sample import Sample, Scores
from strop.threads import threaded

T = TypeVar("T")

_BACKOFF_S = 0.1


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
    is_group: bool = field(kw_only=True, default=False)
    """Whether `fn` takes a list of samples and returns a list of rewards."""
    score_key: str | None = field(kw_only=True, default=None)
    """Which score is the reward, where `fn` returns a table of them."""
    wants_table: bool = field(kw_only=True, default=False)
    """Whether a bare number is a failure."""
    sleep: Callable[[float], Awaitable[object]] = field(kw_only=True, default=asyncio.sleep)
    """Waits between calls: 0.1 s, then twice as long each time."""
    _places: asyncio.Semaphore = field(init=False, repr=False)
    _num_overdue: int = field(init=False, default=0, repr=False)
    """Places held by threads past their deadline."""

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.concurrency)
        self._reading = Reading(self._what, self.score_key, self.wants_table)

    async def score(self, sample: Sample) -> Scores:
        """What the sample is worth: finite numbers. Raises RewardFailed after the last retry; a failure is
        never a reward of 0."""
        if self.is_group:
            (scores,) = await self.score_group([sample])
            return scores
        return await self._retried(sample, self._reading.one)

    async def score_group(self, samples: Sequence[Sample]) -> list[Scores]:
        """What each sample of a group is worth, in order: in one call, or in one a sample."""
        if not self.is_group:
            return await all_of(self.score(sample) for sample in samples)
        return await self._retried(
            list(samples), lambda returned: self._reading.several(returned, len(samples))
        )

    async def _retried(self, given: object, read: Callable[[object], T]) -> T:
        attempt = 0
        while True:
            try:
                return read(await self._call(given))
            except RewardRefused:
                raise
            except RewardFailed as failed:
                if attempt == self.retries:
                    raise RewardFailed(f"{failed} (calls: {attempt + 1})") from failed
            await self.sleep(_BACKOFF_S * 2**attempt)
            attempt += 1

    async def _call(self, given: object) -> object:
        await self._take_place()
        thread = None if is_async(self.fn) else self._started(given)
        try:
            outcome = self.fn(given) if thread is None else await self._ended(thread)
            return await self._awaited(outcome) if inspect.isawaitable(outcome) else outcome
        finally:
            self._leave_place(thread)

    def _started(self, given: object) -> asyncio.Future[object]:
        return threaded(lambda: self.fn(given), error=RewardFailed, what=self._what)

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
