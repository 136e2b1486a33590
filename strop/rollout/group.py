"""One group: its samples played side by side and rewarded; whatever user code does is recorded on them."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from strop.engines.base import Completion, Engine, Request
from strop.errors import GenerateFailed, Recorded, boundary
from strop.randomness import derive
from strop.render.base import Renderer
from strop.rewards.call import checked
from strop.rewards.select import Rewards
from strop.rollout.episode import Parts, play
from strop.rollout.sampling import lowered
from strop.sample import Group, Prompt, Sample, Sampling, Status


@dataclass(frozen=True, slots=True)
class Context:
    """What a custom generate function works with."""

    sample: Sample
    """To fill: `sequence`, `prompt_length`, `status`, and `response` for readers; `reward`, or leave it to
    `reward.fn`."""
    sampling: Sampling
    renderer: Renderer
    seed: int
    engine: Engine

    async def complete(self, ids: list[int], *, call: int = 0, max_tokens: int | None = None) -> Completion:
        """Let the model continue exact ids by `max_tokens` at most (the sample's whole budget, unless given).

        Number the calls of one sample with `call`: each number has noise of its own.
        """
        budget = self.sampling.max_tokens if max_tokens is None else max_tokens
        request = Request(
            id=f"generate/{self.sample.prompt_id}/{self.sample.index}/{call}",
            ids=np.asarray(ids, np.int32),
            sampling=replace(self.sampling, max_tokens=budget),
            seed=derive(self.seed, "call", call),
        )
        return await self.engine.generate(request)


Generate = Callable[[Prompt, Context], Awaitable[list[Sample]]]


@dataclass(frozen=True, slots=True)
class Player:
    """Plays and rewards groups: the same for training and evaluation."""

    parts: Parts
    rewards: Rewards
    generate: Generate | None
    seed: int
    """Of the run."""

    async def finish(self, group: Group, sampling: Sampling, *, purpose: str, step: int) -> None:
        """Complete every sample of the group. User code's errors end up on them; others are raised."""
        ids = self.parts.renderer.prompt(group.prompt)
        most = self.parts.max_context_tokens
        sampling = lowered(sampling, group.prompt, prompt_tokens=len(ids), max_context_tokens=most)
        async with asyncio.TaskGroup() as tasks:
            for member, sample in enumerate(group.samples):
                sample.sampling = sampling
                seed = derive(self.seed, purpose, step, group.id, member)
                tasks.create_task(self._finish_one(sample, group.prompt, ids, seed=seed))
        for sample in group.samples:
            # Its task was cancelled, yet not this one: by the user's own code, and without a word.
            if sample.reward is None and sample.status is not Status.FAILED:
                sample.fail(
                    Recorded("the environment, the reward or rollout.generate cancelled its own task")
                )

    async def _finish_one(self, sample: Sample, prompt: Prompt, ids: list[int], *, seed: int) -> None:
        try:
            given = await self._play(sample, prompt, ids, seed=seed)
            began = time.perf_counter()
            scores = (
                await self.rewards.score(sample, prompt.reward)
                if given is None
                else checked(given, "the reward given")
            )
            sample.timing["reward_s"] = time.perf_counter() - began
            sample.reward, sample.scores = scores.value, {**sample.scores, **scores.named}
        except Recorded as error:
            sample.fail(error)

    async def _play(self, sample: Sample, prompt: Prompt, ids: list[int], *, seed: int) -> float | None:
        if self.generate is None:
            return await play(sample, prompt, ids, parts=self.parts, seed=seed)
        sampling = sample.sampling
        assert sampling is not None
        context = Context(sample, sampling, self.parts.renderer, seed, self.parts.engine)
        with boundary(GenerateFailed, "rollout.generate"):
            async with asyncio.timeout(self.parts.generate_timeout_s):
                made = await self.generate(prompt, context)
            _check_made(made, sample, sampling)
        return sample.reward


def _check_made(made: list[Sample], sample: Sample, sampling: Sampling) -> None:
    """ValueError unless a custom generate function left a sample that can be trained."""
    if not isinstance(made, list) or len(made) != 1 or made[0] is not sample:
        raise ValueError("expected [ctx.sample]; one sample a call is supported so far")
    if sample.status is Status.FAILED:
        raise GenerateFailed(f"rollout.generate: {sample.error or 'set ctx.sample.status to failed'}")
    if sample.status is Status.PENDING:
        raise ValueError("ctx.sample.status is still pending; set it to completed or truncated")
    if not 1 <= sample.prompt_length <= len(sample.sequence):
        raise ValueError(f"prompt_length = {sample.prompt_length} of {len(sample.sequence)} tokens")
    if sample.response_length > sampling.max_tokens:
        raise ValueError(
            f"{sample.response_length} response tokens, rollout.max_response_tokens = {sampling.max_tokens}"
        )


def new_group(group_id: int, prompt: Prompt, *, first_index: int, size: int) -> Group:
    """`size` blank samples of one prompt; what user code does to one reaches neither siblings nor data."""
    messages = prompt.messages if isinstance(prompt.messages, str) else list(prompt.messages)
    samples = [
        Sample(
            index=first_index + member,
            group_id=group_id,
            prompt_id=prompt.id,
            prompt=deepcopy(messages),
            label=prompt.label,
            metadata=deepcopy(prompt.metadata),
            media=prompt.media,
        )
        for member in range(size)
    ]
    return Group(id=group_id, prompt=prompt, samples=samples)
