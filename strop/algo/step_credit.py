"""Credit by steps and turns: what `algo.advantage = "steps"` and "turns" make of a step's samples."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strop.algo.batch import Batch
from strop.algo.returns import discounted_returns
from strop.algo.spans import Spans
from strop.algo.step_advantages import step_advantages
from strop.algo.token_rewards import placed_rewards
from strop.errors import InputError
from strop.sample import STEP_ENDS, STEP_REWARDS, Sample

# N tokens of S samples, K steps of all of them


@dataclass(frozen=True, slots=True)
class Placed:
    """Rewards, and the tokens of the batch at which they are given."""

    reward_K: NDArray[np.float64]
    end_K: NDArray[np.int64]


def steps(batch: Batch) -> NDArray[np.float64]:
    """[N] see `step_advantages`. Raises InputError for a sample whose reward did not return steps."""
    for sample in batch.samples:
        if STEP_REWARDS not in sample.extras:
            raise InputError(f"{_lacks(sample)}; algo.advantage = 'steps' needs a reward that returns them")
    placed = _placed(batch)
    return step_advantages(
        placed.reward_K,
        end_K=placed.end_K,
        mask_N=batch.mask,
        offsets=batch.offsets,
        groups=batch.groups,
        trajectories=batch.trajectories,
    )


def turns(batch: Batch, penalty_N: NDArray[np.float64], *, discount: float) -> NDArray[np.float64]:
    """[N] discounted sums of what steps or turns from each token on are worth; there is no baseline.

    A sample without either is worth its reward, at its end. Raises InputError for one of several samples of a
    trajectory: which of them earned the reward is not known.
    """
    trajectories, counts = np.unique(batch.trajectories, return_counts=True)
    shared = set(trajectories[counts > 1].tolist())
    for sample in batch.samples:
        if STEP_REWARDS not in sample.extras and sample.trajectory_id in shared:
            raise InputError(
                f"{_lacks(sample)}, and its trajectory has other samples; algo.advantage = 'turns' needs to "
                "know which of them earned what"
            )
    placed, spans = _placed(batch), Spans.of_trajectories(batch.offsets, batch.trajectories)
    reward_N = placed_rewards(placed.reward_K, end_K=placed.end_K, mask_N=batch.mask, spans=spans)
    return discounted_returns(reward_N - penalty_N, mask_N=batch.mask, spans=spans, discount=discount)


def _placed(batch: Batch) -> Placed:
    rewards, ends = [np.zeros(0)], [np.zeros(0, np.int64)]
    for sample, begin, end in zip(batch.samples, batch.offsets[:-1], batch.offsets[1:], strict=True):
        if STEP_REWARDS in sample.extras:
            rewards.append(sample.extras[STEP_REWARDS])
            ends.append(begin + sample.extras[STEP_ENDS])
        elif end > begin:
            rewards.append(np.array([sample.reward], np.float64))
            ends.append(np.array([end - 1], np.int64))
    return Placed(np.concatenate(rewards), np.concatenate(ends))


def _lacks(sample: Sample) -> str:
    return f"sample {sample.index} of prompt {sample.prompt_id} has no rewards of steps"
