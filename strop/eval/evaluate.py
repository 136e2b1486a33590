"""The same rollout on held-out prompts; nothing is trained, and training is not disturbed."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from strop.config.tree import EvalSet
from strop.rollout.group import Player, new_group
from strop.sample import Group, Prompt, Sampling


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a held-out set says of the policy."""

    name: str
    groups: list[Group]
    mean: float
    """Of the rewards of all samples that could be rewarded."""
    stderr: float
    """Of that mean over prompts: prompts are the independent draws, their samples are not."""
    n: int
    """Prompts with at least one rewarded sample."""
    failed: int
    """Samples whose environment or reward failed; they are not counted as 0."""

    def as_json(self) -> dict[str, Any]:
        """Without the samples; what cannot be told from so few is null."""
        numbers = {"mean": self.mean, "stderr": self.stderr}
        known = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        return {**known, "n": self.n, "failed": self.failed}


async def evaluate(
    player: Player,
    section: EvalSet,
    prompts: list[Prompt],
    sampling: Sampling,
    on_finished: Callable[[int, int], None] = lambda _done, _of: None,
) -> Evaluation:
    """Play every prompt `samples_per_prompt` times. The noise is the same at every evaluation, so that two
    of them differ by the weights alone."""
    size = section.samples_per_prompt
    groups = [new_group(i, prompt, first_index=i * size, size=size) for i, prompt in enumerate(prompts)]
    done = 0

    async def finish(group: Group) -> None:
        nonlocal done
        await player.finish(group, sampling, purpose=f"eval/{section.name}", step=0)
        done += 1
        on_finished(done, len(groups))

    async with asyncio.TaskGroup() as tasks:
        for group in groups:
            tasks.create_task(finish(group))
    return summarise(section.name, groups)


def summarise(name: str, groups: list[Group]) -> Evaluation:
    """Mean and standard error over prompts; NaN when nothing could be rewarded."""
    per_prompt = np.array([np.mean(group.rewards) for group in groups if group.rewards])
    rewards = [reward for group in groups for reward in group.rewards]
    return Evaluation(
        name=name,
        groups=groups,
        mean=float(np.mean(rewards)) if rewards else float("nan"),
        stderr=float(per_prompt.std(ddof=1) / np.sqrt(len(per_prompt)))
        if len(per_prompt) > 1
        else float("nan"),
        n=len(per_prompt),
        failed=sum(sample.reward is None for group in groups for sample in group.samples),
    )
