"""The `reward` section → `Rewards`: functions found, options, weights and packages checked."""

import functools
import inspect
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from strop.config.tree import Reward
from strop.errors import PluginError, RewardFailed, boundary
from strop.plugins import check_options, resolve, user_code
from strop.rewards.asking import Asking, Guest
from strop.rewards.boxed import Boxed
from strop.rewards.builtin import BOXED, PATHS, RENAMED, BuiltIn, entry_of
from strop.rewards.call import Scorer
from strop.rewards.checks import check_entry, check_own, check_single, check_weights, recorded_as
from strop.rewards.equality import WORKER
from strop.rewards.select import OWN, Holdings, LabelCheck, Opened, Rewards
from strop.rewards.weighted import Weighted
from strop.rewards.workers import Workers

BUILTIN = PATHS
"""Name → import path; the first line of a docstring there is the reward's line of help."""
GROUP = "strop.rewards"
"""Entry points of installed packages that are rewards."""


@runtime_checkable
class _Closes(Protocol):
    def close(self) -> Awaitable[None]: ...


def open_rewards(
    section: Reward,
    *,
    overrides: Iterable[str] = (),
    names: Mapping[str, object] = MappingProxyType({}),
    seed: int = 0,
) -> Rewards:
    """What scores the samples of a run. A class is made once, with the options, and called with each sample;
    a function is called with the sample and the options.

    `overrides`: rewards that prompts name as their own. One that is the run's own `fn`, or among its
    `weights`, has the options given there; others have none. `names`: further functions, by spec. `seed`: of
    the run, for what rewards draw. Raises PluginError, MissingPackage, ConfigError.
    """
    opener = _Opener(section, names, seed)
    main = opener.weighted() if section.weights else opener.single()
    rewards = Rewards(
        main.scoring,
        labels=main.labels,
        is_group=section.group,
        open_one=opener.own,
        holdings=Holdings(opener.close, opener.guests),
    )
    for name in overrides:
        rewards.require(name, where=OWN)
    return rewards


def bind(
    fn: Callable[..., Any], options: Mapping[str, Any], *, key: str, given: Sequence[object] = ()
) -> Callable[..., Any]:
    """The reward with its options in it: a callable that takes a sample, or a list of them, alone.

    `given`: what strop itself gives to a class of its own first.
    """
    if not isinstance(fn, type):
        check_options(fn, options, key=key, num_given=1)
        return functools.partial(fn, **options)
    check_options(fn, options, key=key, num_given=len(given))
    with user_code(PluginError, key):
        made: Callable[..., Any] = fn(*given, **options)
    if not callable(made):
        raise PluginError(
            f"{key}: a {fn.__name__} cannot be called with a sample; give it `__call__(self, sample)`"
        )
    check_options(made, {}, key=key, num_given=1)
    return made


class _Opener:
    def __init__(self, section: Reward, names: Mapping[str, object], seed: int) -> None:
        self._section, self._names = section, {**PATHS, **names}
        self.guests: list[Guest] = []
        self._asking = Asking(
            seed, section.timeout_s, section.retries, section.concurrency, admit=self.guests.append
        )
        self._workers = Workers(WORKER, what="comparing with math-verify")
        self._closing: list[Callable[[], Awaitable[None]]] = [self._workers.close]

    def single(self) -> Opened:
        section = self._section
        check_single(section)
        named = _Named(section.fn, section.options, key="reward.fn", options_key="reward.options")
        return self._open(named, is_own=False)

    def weighted(self) -> Opened:
        section = self._section
        check_weights(section)
        opened = {spec: self._open(self._weighed(spec), is_own=False) for spec in section.weights}
        scorings = {recorded_as(spec): one.scoring for spec, one in opened.items()}
        weights = {recorded_as(spec): weight for spec, weight in section.weights.items()}
        labels = {key: check for one in opened.values() for key, check in one.labels.items()}
        return Opened(Weighted(scorings, weights), labels)

    def own(self, name: str, where: str) -> Opened:
        """The reward that a prompt or a held-out set names."""
        section = self._section
        if name in section.weights:
            return self._open(self._weighed(name), is_own=True)
        options = section.options if name == section.fn and not section.weights else {}
        named = _Named(name, options, key=where, options_key=f"{where} = {name!r}")
        return self._open(named, is_own=True)

    def _weighed(self, spec: str) -> "_Named":
        options = self._section.options.get(spec, {})
        return _Named(spec, options, key="reward.weights", options_key=f"reward.options.{spec}")

    def _open(self, named: "_Named", *, is_own: bool) -> Opened:
        section, entry = self._section, entry_of(named.name)
        check_entry(named.name, section, where=named.where)
        if is_own:
            check_own(named.name, named.options, where=named.key)
        needs_math, asks = entry is not None and entry.needs_math, entry is not None and entry.asks
        of_groups = entry is None or entry.scores_groups(named.options)
        scorer = Scorer(
            self._callable(named, entry),
            name=named.name,
            # What asks bounds and repeats each of its questions.
            timeout_s=math.inf if asks else section.timeout_s,
            retries=0 if asks else section.retries,
            # A deadline runs from when a call begins: none may begin before there is a worker for it.
            concurrency=min(section.concurrency, self._workers.num) if needs_math else section.concurrency,
            is_group=section.group and of_groups and not is_own,
            score_key=section.score_key,
            wants_table=section.score_key is not None and not section.weights and not is_own,
        )
        return Opened(scorer, _labels(entry, named))

    def _callable(self, named: "_Named", entry: BuiltIn | None) -> Callable[..., Any]:
        plain = RENAMED.get(named.name, named.name)
        is_boxed = entry is not None and plain.startswith(BOXED)
        spec = plain.removeprefix(BOXED) if is_boxed else plain
        fn = resolve(spec, key=named.key, names=self._names, group=GROUP)
        given = self._given(entry)
        made = bind(fn, named.options, key=named.options_key, given=given)
        self._note_closing(made.func if isinstance(made, functools.partial) else made)
        return Boxed(made) if is_boxed else made

    def _given(self, entry: BuiltIn | None) -> tuple[object, ...]:
        if entry is None:
            return ()
        return (self._workers,) * entry.needs_math + (self._asking,) * entry.asks

    def _note_closing(self, made: object) -> None:
        if isinstance(made, _Closes) and inspect.iscoroutinefunction(made.close):
            self._closing.append(made.close)

    async def close(self) -> None:
        for close in self._closing:
            # What is left to close when all samples are scored is no reason to fail a run.
            with suppress(RewardFailed), boundary(RewardFailed, "reward: close"):
                await close()


@dataclass(frozen=True, slots=True)
class _Named:
    """A reward as the run names it."""

    name: str
    options: Mapping[str, Any]
    key: str
    """Of the run that names it."""
    options_key: str

    @property
    def where(self) -> str:
        return f"{self.key} = {self.name!r}"


def _labels(entry: BuiltIn | None, named: _Named) -> dict[str, LabelCheck]:
    if entry is None or entry.label is None or named.options.get("label", True) is False:
        return {}
    return {named.where: resolve(entry.label, key=named.key, names={}, group=GROUP)}
