"""The same rollout on held-out prompts; nothing is trained, and training is not disturbed."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from strop.config.tree import EvalSet
from strop.eval.intervals import Interval, interval_of, standard_error
from strop.rollout.group import Player, new_group
from strop.sample import Group, Prompt, Sampling, Status
from strop.telemetry import passes


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a held-out set says of the policy. A reward is a trajectory's: the mean over its samples."""

    name: str
    groups: list[Group]
    mean: float
    """Of all rewards."""
    stderr: float
    """Of that mean over prompts: prompts are the independent draws, their samples are not."""
    interval: Interval | None
    """95 % of the mean; None when so few prompts cannot tell."""
    n: int
    """Prompts with at least one reward."""
    samples: int
    """Trajectories played."""
    failed: int
    """Of these, those without a reward: the environment or the reward failed. They are not counted as 0."""
    pass_at: dict[int, float]
    """k → pass@k over the prompts with at least k rewards; NaN when there is none."""
    left_out: dict[int, int]
    """k → prompts that have fewer rewards than k, because others failed; only where there are any."""
    truncated_share: float
    """Of the samples that did not fail."""
    response_tokens: float
    """Their mean length."""
    figures: dict[str, float] = field(default_factory=dict)
    """What is told beside the mean, of rows that are not played: the loss, …"""

    def as_json(self) -> dict[str, Any]:
        """Without the samples; what cannot be told from so few is null."""
        numbers = {
            "mean": self.mean,
            "stderr": self.stderr,
            "low": self.interval.low if self.interval else math.nan,
            "high": self.interval.high if self.interval else math.nan,
            **{f"pass_at_{k}": value for k, value in self.pass_at.items()},
            "truncated_share": self.truncated_share,
            "response_tokens": self.response_tokens,
            **self.figures,
        }
        return {
            **{name: value if math.isfinite(value) else None for name, value in numbers.items()},
            "interval": self.interval.method if self.interval else None,
            "n": self.n,
            "prompts": len(self.groups),
            "samples": self.samples,
            "failed": self.failed,
            **{f"pass_left_out_{k}": prompts for k, prompts in self.left_out.items()},
        }


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
    return summarise(section, groups)


def summarise(section: EvalSet, groups: list[Group]) -> Evaluation:
    """All figures; NaN where nothing could be rewarded."""
    prompts = [_known_rewards(group) for group in groups]
    rewards = [reward for of_prompt in prompts for reward in of_prompt]
    mean = float(np.mean(rewards)) if rewards else math.nan
    samples = sum(len({s.trajectory_id for s in group.samples}) for group in groups)
    done = [s for group in groups for s in group.samples if s.status is not Status.FAILED]
    truncated = sum(sample.status is Status.TRUNCATED for sample in done)
    ks = passes.ks(section.samples_per_prompt)
    short = {k: sum(len(of_prompt) < k for of_prompt in prompts) for k in ks}
    return Evaluation(
        name=section.name,
        groups=groups,
        mean=mean,
        stderr=standard_error(prompts),
        interval=interval_of(mean, prompts),
        n=sum(bool(of_prompt) for of_prompt in prompts),
        samples=samples,
        failed=samples - len(rewards),
        pass_at={k: _pass_at(k, prompts, section.pass_threshold) for k in ks},
        left_out={k: n for k, n in short.items() if n},
        truncated_share=truncated / len(done) if done else math.nan,
        response_tokens=float(np.mean([s.response_length for s in done])) if done else math.nan,
    )


def _known_rewards(group: Group) -> list[float]:
    """One per trajectory of which every sample was rewarded."""
    rewards: dict[int, list[float]] = {}
    for sample in group.samples:
        rewards.setdefault(sample.trajectory_id, []).extend([] if sample.reward is None else [sample.reward])
    unknown = {sample.trajectory_id for sample in group.samples if sample.reward is None}
    return [float(np.mean(given)) for trajectory, given in rewards.items() if trajectory not in unknown]


def _pass_at(k: int, prompts: list[list[float]], threshold: float) -> float:
    of = passes.figure(k, threshold)
    known = [value for value in map(of, prompts) if value is not None]
    return float(np.mean(known)) if known else math.nan
