"""`Rewards`: which reward scores a sample, the run's or its prompt's own; and the end of what they hold."""

from asyncio import Task, TaskGroup
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from strop.errors import DataError, PluginError
from strop.rewards.asking import Guest, Host
from strop.rewards.call import all_of
from strop.sample import Prompt, Sample, Scores

OWN = "the prompt's reward"
"""Place of an override of which no better place is known, for messages."""

LabelCheck = Callable[[Prompt], None]
"""Raises ValueError when a prompt's label cannot be compared with."""


class Scoring(Protocol):
    """A reward with what is around it."""

    async def score(self, sample: Sample) -> Scores: ...
    async def score_group(self, samples: Sequence[Sample]) -> list[Scores]: ...


async def _holds_nothing() -> None:
    pass


@dataclass(frozen=True)
class Holdings:
    """What the rewards of a run hold."""

    close: Callable[[], Awaitable[None]] = _holds_nothing
    """Ends worker processes and connections."""
    guests: Sequence[Guest] = ()
    """Models that answer within the run."""


@dataclass(frozen=True)
class Opened:
    """A reward, and what it expects of labels."""

    scoring: Scoring
    labels: Mapping[str, LabelCheck] = field(default_factory=dict)
    """By the key of the run that asks for a label, `reward.fn = 'exact'`."""


def _no_overrides(name: str, where: str) -> Opened:
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
        labels: Mapping[str, LabelCheck] | None = None,
        is_group: bool = False,
        open_one: Callable[[str, str], Opened] = _no_overrides,
        holdings: Holdings | None = None,
    ) -> None:
        self.is_group = is_group
        self._holdings = holdings or Holdings()
        self._main, self._open_one = Opened(main, labels or {}), open_one
        self._own: dict[str, Opened] = {}

    def require(self, name: str, *, where: str) -> None:
        """Make the reward that prompts name as their own. Raises PluginError, opened by `where`."""
        if name not in self._own:
            self._own[name] = self._open_one(name, where)

    def prepare(self) -> None:
        """See that models which answer within the run can be served. Raises ConfigError."""
        for guest in self.guests:
            guest.prepare()

    @property
    def guests(self) -> Sequence[Guest]:
        """Models that answer within the run."""
        return self._holdings.guests

    def serve(self, host: Host, tasks: TaskGroup) -> list[Task[None]]:
        """Load the models that answer within the run, and serve them in `tasks`, for the owner to cancel."""
        engines = [guest.enter(host) for guest in self.guests]
        own = [engine for engine in engines if engine is not None]
        return [tasks.create_task(engine.serve(ahead=host.engine)) for engine in own]

    def check_labels(self, prompts: Sequence[Prompt], *, where: str) -> None:
        """Raises DataError for the first prompt whose label its reward cannot compare with."""
        for prompt in prompts:
            for key, check in self._opened(prompt.reward).labels.items():
                try:
                    check(prompt)
                except ValueError as wrong:
                    if prompt.label is None:
                        raise DataError(
                            f"{where}: {prompt.id} has no label, which {key} compares with; add one, or name "
                            "its field in prompts.label_key"
                        ) from wrong
                    raise DataError(f"{where}: {prompt.id}: {key}: {wrong}") from wrong

    async def score(self, sample: Sample, override: str | None = None) -> Scores:
        """What one sample is worth; `override`: `Prompt.reward`. Raises RewardFailed after the last retry."""
        return await self._opened(override).scoring.score(sample)

    async def score_group(self, samples: Sequence[Sample], override: str | None = None) -> list[Scores]:
        """What each sample of a group is worth, in order. A prompt's own reward scores one sample at a time.
        Raises RewardFailed: one that cannot be known leaves the others without a comparison."""
        own = self._opened(override).scoring
        if override is None:
            return await own.score_group(samples)
        return await all_of(own.score(sample) for sample in samples)

    async def close(self) -> None:
        """End worker processes and connections; more than once is harmless."""
        await self._holdings.close()

    def _opened(self, override: str | None) -> Opened:
        if override is None:
            return self._main
        self.require(override, where=OWN)
        return self._own[override]
