"""The contracts of rewards and of keep functions, each tried out on made-up samples."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from strop.config.tree import Reward
from strop.errors import Recorded
from strop.finding import Finding, Level
from strop.plugins import check_call
from strop.rewards.open import open_rewards
from strop.rewards.select import Rewards
from strop.rollout.group import new_group
from strop.rollout.keep import judge, open_keep
from strop.sample import Group, Prompt, Sample, Scores, Status, Tokens

_ODD = ("", " ", "\n", "💡", "-", "1" * 5_000, "x" * 100_000, "\ufffd\x00")
"""Responses that models give sooner or later."""
_REWARDS: tuple[list[float], ...] = (
    [0.0, 0.0],
    [1.0, 1.0],
    [0.0, 1.0],
    [0.1] * 8,
    [-3.0, 2.0],
    [1e9, 1e9 + 1],
    [1.0],
)
_TIMEOUT_S = 30.0


def finished_sample(text: str, label: Any, *, index: int = 0, reward: float | None = None) -> Sample:
    """As a run would hand it to a reward."""
    prompt = Prompt(id="doctor", messages="What is 6 * 7?", label=label)
    (sample,) = new_group(0, prompt, first_index=index, size=1).samples
    sample.sequence = Tokens.context([1, 2]) + Tokens.drawn([3], [-0.5], [0])
    sample.prompt_length, sample.response, sample.status, sample.reward = 2, text, Status.COMPLETED, reward
    return sample


def reward_findings(
    spec: str, options: Mapping[str, Any], label: Any, *, is_group: bool
) -> Iterator[Finding]:
    """A finite number for any response, the same twice, and the sample as it was. Raises PluginError."""
    section = Reward(fn=spec, options=dict(options), group=is_group, retries=0, timeout_s=_TIMEOUT_S)
    yield from asyncio.run(_rewarded(open_rewards(section), label))


async def _rewarded(rewards: Rewards, label: Any) -> list[Finding]:
    texts = [str(label), *_ODD]
    trials: list[_Trial] = []
    try:
        for text in texts:
            trials.append(await _tried(rewards, text, label))
            if trials[-1].seconds >= _TIMEOUT_S:  # the next one would take as long
                break
    finally:
        await rewards.close()
    values = [trial.value for trial in trials if trial.value is not None]
    slowest = max(trial.seconds for trial in trials)
    return [*_alike(trials, len(texts)), *_of_values(values, len(texts), slowest)]


@dataclass(frozen=True, slots=True)
class _Trial:
    """One response, scored twice."""

    text: str
    value: float | None
    seconds: float
    """Of one call."""
    faults: tuple[tuple[Level, str, str], ...]
    """Level, about, and what is wrong."""


async def _tried(rewards: Rewards, text: str, label: Any) -> _Trial:
    sample = finished_sample(text, label)
    before, began = deepcopy(sample), time.perf_counter()
    try:
        one, two = await _score(rewards, sample), await _score(rewards, finished_sample(text, label))
    except Recorded as failed:
        fault = (Level.FAIL, "any response", f", label {label!r}: {failed}")
        return _Trial(text, None, time.perf_counter() - began, (fault,))
    seconds = (time.perf_counter() - began) / 2
    faults = []
    if one != two:
        worth = f" is worth {one.value:g}, then {two.value:g}: a resumed run will not repeat itself"
        faults.append((Level.WARN, "twice", worth))
    if sample != before:
        faults.append((Level.WARN, "the sample", ": is changed; return the reward alone"))
    return _Trial(text, one.value, seconds, tuple(faults))


def _alike(trials: Sequence[_Trial], num: int) -> Iterator[Finding]:
    """A line for each kind of fault: the first of the kind, and how many more there are."""
    kinds: dict[tuple[str, str], list[Finding]] = {}
    for trial in trials:
        for level, about, wrong in trial.faults:
            kind = wrong if level is Level.FAIL else ""
            found = Finding(level, about, f"{_shown(trial.text)}{wrong}")
            kinds.setdefault((about, kind), []).append(found)
    for first, *more in kinds.values():
        yield replace(first, text=f"{first.text}; {len(more)} more alike") if more else first
    if len(trials) < num:
        text = f"{num - len(trials)} more not tried: a call took {_TIMEOUT_S:g} s"
        yield Finding(Level.FAIL, "any response", text)


def _of_values(values: Sequence[float], num: int, slowest: float) -> Iterator[Finding]:
    if len(values) == num:
        yield Finding(Level.OK, "any response", f"{num} responses scored, at most {slowest:.2g} s each")
        if len(set(values)) == 1:
            text = f"every response is worth {values[0]:g}, the label itself too: nothing is learnt from that"
            yield Finding(Level.WARN, "the label", f"{text}, unless labels have another form (--label JSON)")
        else:
            yield Finding(Level.OK, "the label", f"as the response is worth {values[0]:g}")


async def _score(rewards: Rewards, sample: Sample) -> Scores:
    if rewards.is_group:
        scores, _ = await rewards.score_group([sample, finished_sample("", sample.label, index=1)])
        return scores
    return await rewards.score(sample)


def _shown(text: str) -> str:
    return repr(text) if len(text) <= 12 else f"{text[0]!r} × {len(text):,}"


def keep_findings(spec: str) -> Iterator[Finding]:
    """A yes, a no or a reason for any rewards, the same twice, the group as it was. Raises PluginError."""
    keep = open_keep(spec)
    assert keep is not None
    check_call(keep, ("group",), key=f"rollout.keep = {spec!r}", awaited=False)
    kept = 0
    for rewards in _REWARDS:
        group = _group(rewards)
        before = deepcopy(group)
        verdict, again = judge(group, keep), judge(_group(rewards), keep)
        kept += verdict is None
        if verdict is not None and verdict.reason.startswith("failed"):
            yield Finding(Level.FAIL, "any group", f"rewards {rewards}: {verdict.reason}")
        elif verdict != again:
            yield Finding(Level.FAIL, "twice", f"rewards {rewards}: another verdict the second time")
        if group != before:
            yield Finding(
                Level.FAIL, "the group", f"rewards {rewards}: is changed; a verdict is all that is asked"
            )
    text = f"{kept} of {len(_REWARDS)} made-up groups are kept"
    yield Finding(Level.OK if kept else Level.WARN, "kept", text)


def _group(rewards: list[float]) -> Group:
    prompt = Prompt(id="doctor", messages="What is 6 * 7?", label=42)
    samples = [finished_sample("42", 42, index=i, reward=reward) for i, reward in enumerate(rewards)]
    return Group(0, prompt, samples)
