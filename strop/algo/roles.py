"""Advantages in self-play: against a moving average of the same role's rewards (SPIRAL, arXiv:2506.24119).

Two players of one game have rewards of opposite sign, and the one who moves first may win more often: a
baseline over both would reward the seat.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strop.algo.advantages import rows_by, trajectory_rewards

# S samples

DECAY = 0.95
"""α of b ← α·b + (1 − α)·R."""


@dataclass(frozen=True, slots=True)
class RoleCredit:
    """What one step gives."""

    advantages: NDArray[np.float64]
    """[S]"""
    baselines: dict[str, float]
    """By role, to begin the next step with."""


def role_advantages(
    rewards: NDArray[np.float64],
    *,
    roles: Sequence[str],
    trajectories: NDArray[np.int64],
    baselines: Mapping[str, float],
    decay: float = DECAY,
) -> RoleCredit:
    """A = R − b, with the role's b moved towards R before it is subtracted; a new role begins at 0.

    A role is whatever shares a baseline, such as "tictactoe/first". Samples of one trajectory and role move
    it once, by the mean of their rewards, in the order of their first. Failed ones (NaN) move nothing and
    get 0.
    """
    known = dict(baselines)
    role_ids = {role: number for number, role in enumerate(dict.fromkeys(roles))}
    part_of = np.array([role_ids[role] for role in roles], np.int64)
    _, trajectory_of = np.unique(trajectories, return_inverse=True)
    part_of += len(role_ids) * trajectory_of.astype(np.int64)
    reward_of = trajectory_rewards(rewards, trajectories=part_of)
    advantages = np.zeros(len(rewards), np.float64)
    for rows in sorted(rows_by(part_of), key=lambda rows: int(rows[0])):
        reward, role = float(reward_of[rows[0]]), roles[int(rows[0])]
        if not np.isnan(reward):
            known[role] = decay * known.get(role, 0.0) + (1 - decay) * reward
            advantages[rows] = reward - known[role]
    return RoleCredit(advantages=np.where(np.isnan(rewards), 0.0, advantages), baselines=known)
