"""Advantages against all tokens of the step: REINFORCE++, also with a group baseline (arXiv:2501.03262)."""

import numpy as np
from numpy.typing import NDArray

from strop.algo.advantages import group_advantages
from strop.algo.returns import discounted_returns
from strop.algo.spans import Spans
from strop.algo.token_rewards import less_kl, outcome_rewards
from strop.algo.whiten import Variance, Whitened, whiten

# N tokens of S samples


def reinforce_pp(
    rewards: NDArray[np.float64],
    kl_N: NDArray[np.floating],
    *,
    mask_N: NDArray[np.bool_],
    spans: Spans,
    kl_coef: float,
    discount: float,
    variance: Variance,
) -> Whitened:
    """The outcome on the last trained token, −kl_coef · kl on each, summed with the discount, then whitened.

    No group is needed. `kl_N` is not changed; with `kl_coef` 0 pass zeros.
    """
    reward_N = outcome_rewards(rewards, mask_N=mask_N, spans=spans)
    priced_N = less_kl(reward_N, kl_N, mask_N=mask_N, coef=kl_coef)
    return whiten(
        discounted_returns(priced_N, mask_N=mask_N, spans=spans, discount=discount), mask_N, variance=variance
    )


def reinforce_pp_baseline(
    rewards: NDArray[np.float64],
    kl_N: NDArray[np.floating],
    *,
    groups: NDArray[np.int64],
    trajectories: NDArray[np.int64],
    mask_N: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    kl_coef: float,
    variance: Variance,
) -> Whitened:
    """Reward less its group's mean on every token, less kl_coef · kl (0 where KL is a loss), then whitened.

    Fan-out, failures and groups of one as in `group_advantages`.
    """
    per_sample = group_advantages(
        rewards,
        groups=groups,
        trajectories=trajectories,
        normalize_std=False,
        algorithm="reinforce_pp_baseline",
    )
    per_token = np.repeat(per_sample, np.diff(offsets))
    return whiten(less_kl(per_token, kl_N, mask_N=mask_N, coef=kl_coef), mask_N, variance=variance)
