"""Advantages relative to the group: GRPO (arXiv:2402.03300) and Dr. GRPO (arXiv:2503.20783)."""

import numpy as np
from numpy.typing import NDArray

from strop.errors import InputError
from strop.sample import all_equal

_EPSILON = 1e-6
"""Added to the standard deviation, as in slime and verl (TRL adds 1e-4, OpenRLHF 1e-9)."""


def group_advantages(
    rewards: NDArray[np.float64],
    *,
    groups: NDArray[np.int64],
    trajectories: NDArray[np.int64],
    normalize_std: bool,
) -> NDArray[np.float64]:
    """[S] advantage of every sample: its trajectory's reward less the mean of its group's trajectories.

    With `normalize_std`, divided by their unbiased standard deviation + 1e-6. A trajectory's reward is the
    mean of its samples' (which as a rule share one), and its samples share its advantage. A group whose
    rewards are all equal gives exactly 0. Groups may differ in size; the order of samples does not matter.
    Raises InputError for a group of one trajectory: it would train on zeros for ever.
    """
    advantages = np.zeros(len(rewards), np.float64)
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        _, trajectory_of_row = np.unique(trajectories[rows], return_inverse=True)
        by_trajectory = np.bincount(trajectory_of_row, weights=rewards[rows]) / np.bincount(trajectory_of_row)
        if len(by_trajectory) < 2:
            raise InputError(
                f"group {group}: 1 trajectory, so nothing to compare it with; "
                "algo.type = 'grpo' needs at least 2: raise rollout.samples_per_prompt"
            )
        advantages[rows] = _relative(by_trajectory, normalize_std=normalize_std)[trajectory_of_row]
    return advantages


def _relative(rewards: NDArray[np.float64], *, normalize_std: bool) -> NDArray[np.float64]:
    """Of one group, one reward per trajectory."""
    if all_equal(rewards):
        return np.zeros_like(rewards)
    centred = rewards - float(rewards.mean())
    return centred / (float(rewards.std(ddof=1)) + _EPSILON) if normalize_std else centred
