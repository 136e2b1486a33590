"""One group: its samples played side by side and rewarded; whatever user code does is recorded on them."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import numpy as np

from strop.engines.base import Completion, Request
from strop.errors import GenerateFailed, Recorded, boundary
from strop.randomness import derive
from strop.render.base import Renderer
from strop.rewards.call import Scorer
from strop.rollout.episode import Parts, play
from strop.sample import Group, Prompt, Sample, Sampling, Scores


@dataclass(frozen=True, slots=True)
class Context:
    """What a custom generate function works with."""

    sample: Sample
    """To fill: `sequence`, `prompt_length`, `status`, and `response` for readers."""
    sampling: Sampling
    renderer: Renderer
    seed: int
    parts: Parts

    async def complete(self, ids: list[int], *, call: int = 0) -> Completion:
        """Let the model continue exact ids; number the calls of one sample with `call`."""
        request_id = f"generate/{self.sample.prompt_id}/{self.sample.index}/{call}"
        request = Request(request_id, np.asarray(ids, np.int32), self.sampling, self.seed)
        return await self.parts.engine.generate(request)


Generate = Callable[[Prompt, Context], Awaitable[list[Sample]]]


@dataclass(frozen=True, slots=True)
class Player:
    """Plays and rewards groups: the same for training and evaluation."""

    parts: Parts
    scorer: Scorer
    generate: Generate | None
    seed: int
    """Of the run."""

    async def finish(self, group: Group, sampling: Sampling, *, purpose: str, step: int) -> None:
        """Complete every sample of the group. User code's errors end up on them; others are raised."""
        async with asyncio.TaskGroup() as tasks:
            for member, sample in enumerate(group.samples):
                seed = derive(self.seed, purpose, step, group.id, member)
                tasks.create_task(self._finish_one(sample, group.prompt, sampling, seed))

    async def _finish_one(self, sample: Sample, prompt: Prompt, sampling: Sampling, seed: int) -> None:
        try:
            given = await self._play(sample, prompt, sampling, seed)
            began = time.perf_counter()
            scores = Scores(given) if given is not None else await self.scorer.score(sample)
            sample.timing["reward_s"] = time.perf_counter() - began
            sample.reward, sample.scores = scores.value, dict(scores.named)
        except Recorded as error:
            sample.fail(error)

    async def _play(self, sample: Sample, prompt: Prompt, sampling: Sampling, seed: int) -> float | None:
        if self.generate is None:
            return await play(sample, prompt, sampling, self.parts, seed=seed)
        sample.sampling = sampling
        context = Context(sample, sampling, self.parts.renderer, seed, self.parts)
        with boundary(GenerateFailed, "rollout.generate"):
            made = await self.generate(prompt, context)
        if made != [sample]:
            raise GenerateFailed(
                "rollout.generate: expected [ctx.sample]; one sample a call is supported so far"
            )
        return sample.reward


def new_group(group_id: int, prompt: Prompt, *, first_index: int, size: int) -> Group:
    """`size` blank samples of one prompt."""
    messages = prompt.messages if isinstance(prompt.messages, str) else list(prompt.messages)
    samples = [
        Sample(
            index=first_index + member,
            group_id=group_id,
            prompt_id=prompt.id,
            prompt=messages,
            label=prompt.label,
            metadata=dict(prompt.metadata),
            media=prompt.media,
        )
        for member in range(size)
    ]
    return Group(id=group_id, prompt=prompt, samples=samples)
