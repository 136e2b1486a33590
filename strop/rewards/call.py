"""`Scorer`: calls a reward under a deadline, again after a failure, and never too many at once."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from strop.errors import RewardFailed, boundary
from strop.plugins import is_async
from strop.rewards.base import RewardRefused
from strop.rewards.crew import Crew, late
from strop.rewards.places import Places
from strop.rewards.returned import Reading
from strop.sample import Sample, Scores

T = TypeVar("T")

_BACKOFF_S = 0.1


@dataclass
class Scorer:
    """A reward with what is around it: a deadline, retries, a limit on concurrency.

    A coroutine function is awaited, a plain `def` runs in a thread, of which there are `concurrency` at most.
    One that is past its deadline counts among them until it really ends, so retries never add threads; when
    all are, scoring fails instead of waiting for ever.
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
    _places: Places = field(init=False, repr=False)
    """Of coroutines; threads are the crew's."""
    _is_async: bool = field(init=False, repr=False)
    _crew: Crew | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        self._places = Places(self.concurrency)
        self._is_async = is_async(self.fn)
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
        if self._is_async:
            async with self._places.here():
                return await self._awaited(self.fn(given))
        outcome = await self._in_thread(lambda: self.fn(given))
        if not inspect.isawaitable(outcome):
            return outcome
        async with self._places.here():
            return await self._awaited(outcome)

    async def _in_thread(self, call: Callable[[], object]) -> object:
        loop = asyncio.get_running_loop()
        if self._crew is None or self._crew.loop is not loop:
            self._crew = Crew(loop, self._what, timeout_s=self.timeout_s, most=self.concurrency)
        return await self._crew(call)

    async def _awaited(self, call: Awaitable[object]) -> object:
        try:
            async with asyncio.timeout(self.timeout_s):
                with boundary(RewardFailed, self._what):
                    return await call
        except TimeoutError as caught:
            raise late(self._what, self.timeout_s) from caught

    @property
    def _what(self) -> str:
        return f"reward {self.name}"


async def all_of(calls: Iterable[Awaitable[T]]) -> list[T]:
    """What each returned, in order, once all have ended; raises the first failure of them."""
    ended = await asyncio.gather(*calls, return_exceptions=True)
    returned: list[T] = []
    for outcome in ended:
        if isinstance(outcome, BaseException):
            raise outcome
        returned.append(outcome)
    return returned
