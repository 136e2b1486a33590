"""Advantages from process rewards: the steps of a group's responses compared with one another
(GRPO with process supervision, arXiv:2402.03300 §4.1.3)."""

import numpy as np
from numpy.typing import NDArray

from strop.algo.advantages import require_several, rows_by, standardised
from strop.algo.returns import discounted_returns
from strop.algo.spans import Spans
from strop.algo.token_rewards import placed_rewards

# N tokens of S samples, K steps of all of them


def step_advantages(
    reward_K: NDArray[np.float64],
    *,
    end_K: NDArray[np.int64],
    mask_N: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    groups: NDArray[np.int64],
    trajectories: NDArray[np.int64],
) -> NDArray[np.float64]:
    """[N] the standardised rewards of its trajectory's steps that end at the token or behind it, summed.

    `end_K` is the last token of each step, in any order. Mean and unbiased deviation are of all the steps of
    a group, so a longer response weighs more; equal rewards, or a single step, give exactly 0. A sum pays
    for every step above the mean: where a policy could add empty ones, give gains or one aggregate
    (`process.py`). Raises InputError for a group of one trajectory.
    """
    for rows in rows_by(groups):
        require_several(trajectories[rows], group=int(groups[rows[0]]), algorithm="grpo")
    sample_of_token = np.repeat(np.arange(len(groups)), np.diff(offsets))
    spans = Spans.of_trajectories(offsets, trajectories)
    standard_K = np.zeros(len(reward_K), np.float64)
    for steps in rows_by(groups[sample_of_token[end_K]]):
        standard_K[steps] = standardised(reward_K[steps])
    reward_N = placed_rewards(standard_K, end_K=end_K, mask_N=mask_N, spans=spans)
    return discounted_returns(reward_N, mask_N=mask_N, spans=spans, discount=1.0)
