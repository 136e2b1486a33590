"""One group: its trajectories played side by side and rewarded; what user code does is recorded on them."""

import asyncio
import time
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TypeVar

from strop.errors import GenerateFailed, Recorded
from strop.randomness import derive
from strop.rewards.returned import checked
from strop.rewards.select import Rewards
from strop.rollout.custom import Context, Generate
from strop.rollout.deadline import within
from strop.rollout.episode import Parts, play
from strop.rollout.hooks import Hooks, Occasion
from strop.rollout.intact import kept_intact
from strop.rollout.sampling import lowered
from strop.rollout.step_rewards import put_steps
from strop.sample import Group, Prompt, Sample, Sampling, Scores, Status, Tokens

T = TypeVar("T")

TRAINING = "sample"
"""Purpose of the noise of samples that are trained on."""
GREEDY = "greedy"
"""… of greedy replies that they are compared with; any other is an evaluation."""
_UNCHANGEABLE = (str, int, float, bool, type(None))
"""Copying these one by one would cost more than playing a short sample."""
_WITHOUT_REWARD = (Status.FAILED, Status.ABORTED)


@dataclass(frozen=True, slots=True)
class Player:
    """Plays and rewards groups: the same for training and evaluation."""

    parts: Parts
    rewards: Rewards
    generate: Generate | None
    seed: int
    """Of the run."""
    hooks: Hooks = field(default_factory=Hooks)
    plays_greedy: bool = False
    """Whether a training group gets a greedy reply to its prompt beside it, to be compared with."""

    async def finish(self, group: Group, sampling: Sampling, *, purpose: str, step: int) -> None:
        """Complete every trajectory of the group; `group.samples` then holds all their samples, flat and in
        order. User code's errors end up on them; others are raised."""
        opening = Tokens.context(self.parts.renderer.prompt(group.prompt))
        most = self.parts.max_context_tokens
        sampling = lowered(sampling, group.prompt, prompt_tokens=len(opening), max_context_tokens=most)
        occasion = Occasion(step, is_eval=purpose not in (TRAINING, GREEDY))
        made: dict[int, list[Sample]] = {}

        async def finish_one(member: int, sample: Sample) -> None:
            sample.sampling = sampling
            seed = derive(self.seed, purpose, step, group.id, member)
            context = Context(sample, sampling, self.parts.renderer, seed, self.parts.engine, occasion)
            made[member] = await self._trajectory(context, group.prompt, opening)
            await self._close(made[member], group.prompt, occasion)

        async with asyncio.TaskGroup() as tasks:
            for member, sample in enumerate(group.samples):
                tasks.create_task(finish_one(member, sample))
        for member, sample in enumerate(group.samples):
            if member not in made:
                _fail_cancelled(sample)
        every = [made.get(member, [sample]) for member, sample in enumerate(group.samples)]
        group.samples = [sample for samples in every for sample in samples]
        for sample in group.samples:
            if sample.reward is None and sample.status not in _WITHOUT_REWARD and not self.rewards.is_group:
                _fail_cancelled(sample)
        if self.rewards.is_group:
            await self._reward_group(group)

    async def _trajectory(self, context: Context, prompt: Prompt, opening: Tokens) -> list[Sample]:
        try:
            return await self._play(context, prompt, opening)
        except Recorded as error:
            context.sample.fail(error)
            return [context.sample]

    async def _play(self, context: Context, prompt: Prompt, opening: Tokens) -> list[Sample]:
        sample = context.sample
        if self.generate is None:
            sample.reward = await play(sample, prompt, opening, parts=self.parts, seed=context.seed)
            return [sample]
        async with within(self.parts.generate_timeout_s, GenerateFailed, "rollout.generate"):
            made = await self.generate(prompt, context)
            context.check(made, vocabulary=self.parts.vocabulary)
        return made

    async def _close(self, samples: list[Sample], prompt: Prompt, occasion: Occasion) -> None:
        """Of one trajectory; all that there is of one that failed is recorded on it."""
        if samples[0].status is Status.FAILED:
            return
        with kept_intact(samples):
            if len(samples) == 1:  # a task of its own is what would cost most of a short sample
                await self._close_one(samples[0], prompt, occasion)
                return
            async with asyncio.TaskGroup() as tasks:
                for sample in samples:
                    tasks.create_task(self._close_one(sample, prompt, occasion))

    async def _close_one(self, sample: Sample, prompt: Prompt, occasion: Occasion) -> None:
        """Hooks, then the reward, unless the environment or the generate function gave one."""
        try:
            await self.hooks.run(sample, occasion)
            if sample.status is Status.ABORTED:
                return
            began = time.perf_counter()
            if sample.reward is not None:
                scores = checked(sample.reward, "the reward given")
            elif not self.rewards.is_group:
                scores = await self.rewards.score(sample, prompt.reward)
            else:
                return
            self._put(sample, scores, began)
        except Recorded as error:
            sample.fail(error)

    async def _reward_group(self, group: Group) -> None:
        """All samples in one call, unless one of them failed or ended early: the group is dropped anyway.
        Rewards that were given stay."""
        bare = [sample.reward is None for sample in group.samples]
        if not any(bare) or any(sample.status in _WITHOUT_REWARD for sample in group.samples):
            return
        began = time.perf_counter()
        try:
            with kept_intact(group.samples):
                scores = await self.rewards.score_group(group.samples, group.prompt.reward)
        except Recorded as error:
            for sample in group.samples:
                sample.fail(error)
            return
        for sample, scored, is_bare in zip(group.samples, scores, bare, strict=True):
            if is_bare and sample.status is not Status.FAILED:
                try:
                    self._put(sample, scored, began)
                except Recorded as error:
                    sample.fail(error)

    def _put(self, sample: Sample, scores: Scores, began: float) -> None:
        sample.timing["reward_s"] = time.perf_counter() - began
        if scores.steps is not None:
            put_steps(sample, scores.steps, self.parts.renderer.decode)
        sample.reward, sample.scores = scores.value, {**sample.scores, **scores.named}


def _fail_cancelled(sample: Sample) -> None:
    """A task that ended without a word was cancelled, yet not this one: by the user's own code."""
    sample.fail(Recorded("the environment, a hook, the reward or rollout.generate cancelled its own task"))


def greedy_twin(group: Group, *, index: int) -> Group:
    """A group of one blank sample of the same prompt, to be played greedily and compared with."""
    return new_group(group.id, group.prompt, first_index=index, size=1)


def new_group(group_id: int, prompt: Prompt, *, first_index: int, size: int) -> Group:
    """`size` blank samples of one prompt; what user code does to one reaches neither siblings nor data."""
    messages = prompt.messages if isinstance(prompt.messages, str) else list(prompt.messages)
    samples = [
        Sample(
            index=first_index + member,
            group_id=group_id,
            prompt_id=prompt.id,
            prompt=_own(messages),
            label=_own(prompt.label),
            metadata=_own(prompt.metadata),
            media=prompt.media,
        )
        for member in range(size)
    ]
    return Group(id=group_id, prompt=prompt, samples=samples)


def _own(value: T) -> T:
    """A copy that shares nothing that can be changed."""
    return value if type(value) in _UNCHANGEABLE else deepcopy(value)
