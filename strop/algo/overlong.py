"""What is done about responses that reach the limit: punish softly (DAPO), change their reward (ProRL), or do
not train on them. One of the three, never two. Lengths are those of responses without prompts (SkyRL#755)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# S samples, N tokens


def soft_overlong_punishment(
    length_S: NDArray[np.integer[Any]], *, limit: int, cache: int
) -> NDArray[np.float64]:
    """[S] to be added to the rewards (DAPO, arXiv:2503.14476 eq. 13): 0 up to limit − cache response tokens,
    −1 from `limit` on, linear in the `cache` > 0 tokens between."""
    return -np.clip((length_S - (limit - cache)) / cache, 0.0, 1.0)


def lower_truncated(
    reward_S: NDArray[np.float64], truncated_S: NDArray[np.bool_], *, coef: float
) -> NDArray[np.float64]:
    """[S] rewards with those of truncated samples multiplied by 0 ≤ `coef` ≤ 1, or set to `coef` < 0 (ProRL,
    as in OpenRLHF). The product suits rewards that are not negative: it would raise these."""
    lowered_S = reward_S * coef if coef >= 0 else np.full_like(reward_S, coef)
    return np.where(truncated_S, lowered_S, reward_S)


def without_truncated(mask_N: NDArray[np.bool_], truncated_N: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[N] the mask with no token of a truncated sample (DAPO §3.4, overlong filtering). Apply it before the
    weights: such tokens leave the denominators, other than rejected ones. Rewards stay in the baseline."""
    return mask_N & ~truncated_N
