"""`Rewards`: which reward scores a sample, the run's or its prompt's own; and the end of what they hold."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from strop.errors import PluginError
from strop.rewards.call import all_of
from strop.sample import Sample, Scores

OWN = "the prompt's reward"
"""Place of an override of which no better place is known, for messages."""


class Scoring(Protocol):
    """A reward with what is around it."""

    async def score(self, sample: Sample) -> Scores: ...
    async def score_group(self, samples: Sequence[Sample]) -> list[Scores]: ...


def _no_overrides(name: str, where: str) -> Scoring:
    raise PluginError(f"{where} = {name!r}: this run has one reward")


class Rewards:
    """What scores the samples of a run: give it a sample with its prompt's own reward, if it has one.

    `open_one(name, where)` makes the reward of a prompt that names its own. With `is_group`, whole groups are
    given to `score_group`.
    """

    def __init__(
        self,
        main: Scoring,
        *,
        is_group: bool = False,
        open_one: Callable[[str, str], Scoring] = _no_overrides,
        closers: Sequence[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        self.is_group = is_group
        self._main, self._open_one, self._closers = main, open_one, closers
        self._own: dict[str, Scoring] = {}

    def require(self, name: str, *, where: str) -> None:
        """Make the reward that prompts name as their own. Raises PluginError, opened by `where`."""
        if name not in self._own:
            self._own[name] = self._open_one(name, where)

    async def score(self, sample: Sample, override: str | None = None) -> Scores:
        """What one sample is worth; `override`: `Prompt.reward`. Raises RewardFailed after the last retry."""
        return await self._scoring(override).score(sample)

    async def score_group(self, samples: Sequence[Sample], override: str | None = None) -> list[Scores]:
        """What each sample of a group is worth, in order. A prompt's own reward scores one sample at a time.
        Raises RewardFailed: one that cannot be known leaves the others without a comparison."""
        if override is None:
            return await self._main.score_group(samples)
        own = self._scoring(override)
        return await all_of(own.score(sample) for sample in samples)

    async def close(self) -> None:
        """End worker processes and connections; more than once is harmless."""
        for close in self._closers:
            await close()

    def _scoring(self, override: str | None) -> Scoring:
        if override is None:
            return self._main
        self.require(override, where=OWN)
        return self._own[override]
