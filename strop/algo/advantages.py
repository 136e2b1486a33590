"""Advantages of whole samples, against the others of their group or a greedy rollout of the same prompt.

GRPO (arXiv:2402.03300), Dr. GRPO (arXiv:2503.20783), RLOO (arXiv:2402.14740), ReMax (arXiv:2310.10505).
A trajectory counts once, however many samples it yields: its reward is the mean of its samples' (which as a
rule share one), and they share its advantage. NaN is the reward of a sample that failed: it is not counted,
and its advantage is 0.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from strop.errors import InputError
from strop.sample import all_equal

# S samples, one group or many of them

_EPSILON = 1e-6
"""Added to the standard deviation, as in slime and verl (TRL adds 1e-4, OpenRLHF 1e-9)."""

OfGroup = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Rewards of one group, one a trajectory, at least 2 → their advantages."""


def group_advantages(
    rewards: NDArray[np.float64],
    *,
    groups: NDArray[np.int64],
    trajectories: NDArray[np.int64],
    normalize_std: bool,
    algorithm: str = "grpo",
) -> NDArray[np.float64]:
    """[S] advantage of every sample: its trajectory's reward less the mean of its group's trajectories.

    With `normalize_std`, divided by their unbiased standard deviation + 1e-6. A group whose rewards are all
    equal gives exactly 0. Groups may differ in size; the order of samples does not matter. Raises InputError
    for a group of one trajectory: it would train on zeros for ever.
    """
    of_group = standardised if normalize_std else centred
    return relative_to_group(
        rewards, groups=groups, trajectories=trajectories, of_group=of_group, algorithm=algorithm
    )


def leave_one_out_advantages(
    rewards: NDArray[np.float64],
    *,
    groups: NDArray[np.int64],
    trajectories: NDArray[np.int64],
    algorithm: str = "rloo",
) -> NDArray[np.float64]:
    """[S] RLOO: a trajectory's reward less the mean of the *others* of its group, G/(G−1) · (r − mean)."""
    return relative_to_group(
        rewards, groups=groups, trajectories=trajectories, of_group=_left_one_out, algorithm=algorithm
    )


def greedy_advantages(
    rewards: NDArray[np.float64],
    *,
    groups: NDArray[np.int64],
    trajectories: NDArray[np.int64],
    greedy: Mapping[int, float],
) -> NDArray[np.float64]:
    """[S] ReMax: a trajectory's reward less that of the greedy rollout of its prompt, `greedy[group id]`.

    A group of one is fine. Raises InputError for a group that `greedy` lacks.
    """
    missing = set(groups.tolist()) - set(greedy)
    if missing:
        raise InputError(
            f"group {min(missing)}: no reward of a greedy rollout, with which algo.type = 'remax' compares"
        )
    baseline = np.array([greedy[group] for group in groups.tolist()], np.float64)
    advantages = trajectory_rewards(rewards, trajectories=trajectories) - baseline
    return np.where(np.isnan(rewards), 0.0, advantages)


def relative_to_group(
    rewards: NDArray[np.float64],
    *,
    groups: NDArray[np.int64],
    trajectories: NDArray[np.int64],
    of_group: OfGroup,
    algorithm: str,
) -> NDArray[np.float64]:
    """[S] what `of_group` makes of the trajectories' rewards of each group, on each of their samples.

    Failed members are left out before; a group of which they leave fewer than two trajectories gives 0.
    Raises InputError, with `algorithm` as the way out says it, for a group of one trajectory.
    """
    advantages = np.zeros(len(rewards), np.float64)
    for rows in rows_by(groups):
        require_several(trajectories[rows], group=int(groups[rows[0]]), algorithm=algorithm)
        rewarded = rows[~np.isnan(rewards[rows])]
        _, trajectory_of_row = np.unique(trajectories[rewarded], return_inverse=True)
        by_trajectory = _means(rewards[rewarded], trajectory_of_row)
        if len(by_trajectory) > 1:
            advantages[rewarded] = of_group(by_trajectory)[trajectory_of_row]
    return advantages


def trajectory_rewards(
    rewards: NDArray[np.float64], *, trajectories: NDArray[np.int64]
) -> NDArray[np.float64]:
    """[S] the mean reward of each sample's trajectory, failed samples left out; NaN if all of them failed."""
    is_rewarded = ~np.isnan(rewards)
    _, trajectory_of_row = np.unique(trajectories, return_inverse=True)
    total = np.bincount(trajectory_of_row, weights=np.where(is_rewarded, rewards, 0.0))
    count = np.bincount(trajectory_of_row, weights=is_rewarded)
    mean = np.full(len(total), np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean[trajectory_of_row]


def rows_by(ids: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """For every id, in ascending order, the rows that hold it, in ascending order."""
    if not len(ids):
        return []
    order = np.argsort(ids, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(ids[order])) + 1)


def require_several(trajectories: NDArray[np.int64], *, group: int, algorithm: str) -> None:
    """Raises InputError when the samples of a group are all of one trajectory."""
    if len(np.unique(trajectories)) < 2:
        raise InputError(
            f"group {group}: 1 trajectory, so nothing to compare it with; "
            f"algo.type = '{algorithm}' needs at least 2: raise rollout.samples_per_prompt"
        )


def centred(rewards: NDArray[np.float64]) -> NDArray[np.float64]:
    """Less their mean; exactly 0 when they are equal to float32's precision."""
    if all_equal(rewards):
        return np.zeros_like(rewards)
    return rewards - float(rewards.mean())


def standardised(rewards: NDArray[np.float64]) -> NDArray[np.float64]:
    """`centred` over their unbiased standard deviation + 1e-6."""
    if all_equal(rewards):
        return np.zeros_like(rewards)
    return centred(rewards) / (float(rewards.std(ddof=1)) + _EPSILON)


def _left_one_out(rewards: NDArray[np.float64]) -> NDArray[np.float64]:
    return centred(rewards) * (len(rewards) / (len(rewards) - 1))


def _means(rewards: NDArray[np.float64], row: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.bincount(row, weights=rewards) / np.bincount(row)
