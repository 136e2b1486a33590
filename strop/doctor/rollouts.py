"""A few groups played with the real model: what the rewards are like before anything is trained."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from strop.envs.open import BUILTIN
from strop.finding import Finding, Level
from strop.preflight import Prepared
from strop.rehearsal import rehearsal
from strop.rollout.group import TRAINING, new_group
from strop.rollout.sampling import run_sampling
from strop.sample import Group, Sample, Status

_BARS = 8
_WIDTH = 30
_MOSTLY = 0.5
_BESIDE_GROUPS = ("greedy", "returns", "turns", "gae", "none")
"""Values of `algo.advantage` that compare with something else than the samples of the group."""


@dataclass(frozen=True, slots=True)
class Played:
    """Groups that were played and rewarded."""

    groups: list[Group]
    seconds: float

    @property
    def samples(self) -> list[Sample]:
        return [sample for group in self.groups for sample in group.samples]

    @property
    def rewards(self) -> list[float]:
        return [sample.reward for sample in self.samples if sample.reward is not None]


def play(prepared: Prepared, n: int, on_finished: Callable[[int], None]) -> Played:
    """The next `n` prompts, as in step 0 of the run; `on_finished` is told how many groups are done."""
    return asyncio.run(_play(prepared, n, on_finished))


async def _play(prepared: Prepared, n: int, on_finished: Callable[[int], None]) -> Played:
    size = prepared.config.rollout.samples_per_prompt
    position = prepared.source.state()
    prompts = prepared.source.next(n)
    prepared.source.restore(position)
    groups = [new_group(i, prompt, first_index=i * size, size=size) for i, prompt in enumerate(prompts)]
    sampling, done = run_sampling(prepared.config.rollout), 0
    async with rehearsal(prepared) as stage:

        async def finish(group: Group) -> None:
            nonlocal done
            await stage.player.finish(group, sampling, purpose=TRAINING, step=0)
            done += 1
            on_finished(done)

        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for group in groups:
                tasks.create_task(finish(group))
    return Played(groups, time.perf_counter() - began)


def is_scored(prepared: Prepared) -> bool:
    """Whether `reward.fn` is what scores: an environment or generate function of the user's may do so."""
    return prepared.generate is None and prepared.config.env.type in BUILTIN


def rollout_findings(prepared: Prepared, played: Played) -> Iterator[Finding]:
    """Failures, lengths, rewards, and whether there is something to learn."""
    samples, rewards = played.samples, played.rewards
    failed = [sample for sample in samples if sample.status is Status.FAILED]
    if failed:
        text = f"{len(failed)} of {len(samples)} samples failed; the first: {failed[0].error}"
        yield Finding(Level.FAIL, "failures", text)
    if not rewards:
        return
    yield from _lengths(prepared, played)
    passed = sum(reward >= 1 for reward in rewards) / len(rewards)
    mean, spread = float(np.mean(rewards)), float(np.std(rewards))
    text = f"mean {mean:.4g}, deviation {spread:.3g}; {passed:.1%} are at least 1, before any training"
    yield Finding(Level.OK, "rewards", f"{len(rewards)} samples of {len(played.groups)} groups: {text}")
    yield from judge_findings(played.samples)
    yield from _learning(prepared, played)
    yield from _times(prepared, played)


def _lengths(prepared: Prepared, played: Played) -> Iterator[Finding]:
    lengths = [sample.response_length for sample in played.samples]
    cut = sum(sample.status is Status.TRUNCATED for sample in played.samples) / len(lengths)
    most = prepared.config.rollout.max_response_tokens
    text = (
        f"responses of {min(lengths)}–{max(lengths)} tokens, mean {np.mean(lengths):.1f}; {cut:.0%} cut off"
    )
    if cut > _MOSTLY and most > 1:
        way_out = f"raise rollout.max_response_tokens (now {most}), or ask for shorter answers"
        yield Finding(Level.WARN, "lengths", f"{text}: {way_out}")
    else:
        yield Finding(Level.OK, "lengths", text)


def judge_findings(samples: Sequence[Sample]) -> Iterator[Finding]:
    """What judges could not be asked: the scores `judge_failed` and `judge_ties`, see `rewards/judge.py`."""
    found = {
        what: [v for sample in samples for name, v in sample.scores.items() if name.endswith(f"judge_{what}")]
        for what in ("failed", "ties")
    }
    if found["failed"]:
        share = float(np.mean(found["failed"]))
        text = f"{share:.0%} of judgings could not be read"
        way_out = "; give the judge more max_tokens, or take a more able model" if share > _MOSTLY else ""
        yield Finding(Level.WARN if way_out else Level.OK, "judge", f"{text}{way_out}")
    if found["ties"] and np.mean(found["ties"]) > _MOSTLY:
        text = (
            f"{np.mean(found['ties']):.0%} of comparisons are ties: the judge goes by the place of a response"
        )
        yield Finding(Level.WARN, "judge", f"{text}, or the responses are alike")


def _learning(prepared: Prepared, played: Played) -> Iterator[Finding]:
    """Groups whose rewards are equal have no gradient, where samples are compared with one another."""
    whole = [group for group in played.groups if len(group.rewards) == len(group.samples)]
    if not whole:
        return
    algo = prepared.config.algo
    if algo.advantage in _BESIDE_GROUPS or algo.is_taught:
        what = "a teacher teaches" if algo.is_taught else f'algo.advantage = "{algo.advantage}" learns'
        text = f"{what} from groups of equal rewards too"
        yield Finding(Level.OK, "learning", text)
        return
    equal = [group for group in whole if group.has_equal_rewards]
    text = f"{len(equal)} of {len(whole)} groups have equal rewards"
    if len(equal) == len(whole):
        yield Finding(Level.WARN, "learning", f"{text}: nothing to learn; {_advice(prepared, played)}")
    elif len(equal) > _MOSTLY * len(whole) and prepared.keep is None:
        text = f'{text}: they teach nothing; rollout.keep = "reward_std" replaces them'
        yield Finding(Level.WARN, "learning", text)
    else:
        yield Finding(Level.OK, "learning", text)


def _advice(prepared: Prepared, played: Played) -> str:
    rollout = prepared.config.rollout
    if rollout.samples_per_prompt == 1:
        return "rollout.samples_per_prompt = 1 leaves nothing to compare with; raise it"
    if min(played.rewards) >= 1:
        return "every sample is right already; make the tasks harder"
    if max(played.rewards) <= 0:
        return "no sample is right; make the tasks easier, or give part of the reward for a part"
    return "raise rollout.temperature or rollout.samples_per_prompt"


def _times(prepared: Prepared, played: Played) -> Iterator[Finding]:
    tokens = sum(int(sample.sequence.sampled.sum()) for sample in played.samples)
    calls = sorted(s.timing["reward_s"] for s in played.samples if "reward_s" in s.timing)
    if not calls:
        return
    text = f"{tokens} tokens in {played.seconds:.3g} s; a reward took {calls[len(calls) // 2]:.2g} s"
    text += f", at most {calls[-1]:.2g} s"
    # A model within the run has no deadline: it waits until the policy has nothing left to draw.
    late = not prepared.rewards.guests and calls[-1] > _MOSTLY * prepared.config.reward.timeout_s
    if late:
        limit = prepared.config.reward.timeout_s
        yield Finding(Level.WARN, "times", f"{text}, of reward.timeout_s = {limit:g} s: raise it")
    else:
        yield Finding(Level.OK, "times", text)


def histogram(rewards: list[float]) -> list[str]:
    """A bar for every value, or for each of eight ranges where there are more values."""
    values = sorted(set(rewards))
    if len(values) <= _BARS:
        counts = [(f"{value:g}", sum(reward == value for reward in rewards)) for value in values]
    else:
        numbers, edges = np.histogram(rewards, bins=_BARS)
        counts = [(f"{low:.3g} …", int(number)) for low, number in zip(edges[:-1], numbers, strict=True)]
    most = max(count for _, count in counts)
    return [
        f"{name:>12} {'█' * max(count > 0, round(_WIDTH * count / most)):<{_WIDTH}} {count}"
        for name, count in counts
    ]
