"""Per-token policy losses: values in, values out; the aggregation is applied by the caller."""

from dataclasses import dataclass

import torch
from torch import Tensor

from strop.algo.kl import LOG_RATIO_LIMIT

# N tokens


@dataclass(frozen=True, slots=True)
class Surrogate:
    """The clipped surrogate of N tokens."""

    loss_N: Tensor
    clipped_low_N: Tensor
    """bool: the lower bound 1 − clip_low made the loss larger (advantage < 0); no gradient there."""
    clipped_high_N: Tensor
    """bool: the upper bound 1 + clip_high did (advantage > 0)."""


def clipped_surrogate(
    logp_N: Tensor,
    old_N: Tensor,
    *,
    advantage_N: Tensor,
    clip_low: float,
    clip_high: float,
    dual_clip: float | None,
) -> Surrogate:
    """PPO's loss (arXiv:1707.06347 eq. 7) with two bounds (DAPO, arXiv:2503.14476 eq. 8): with
    r = exp(logp − old), max(−r · A, −clip(r, 1 − clip_low, 1 + clip_high) · A).

    `dual_clip` c > 1 bounds it by c · |A| where A < 0 (arXiv:1912.09729). NaN in, NaN out: callers leave
    untrained tokens out.
    """
    log_ratio_N = (logp_N - old_N).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    ratio_N = log_ratio_N.exp()
    raw_N = -ratio_N * advantage_N
    bounded_N = -ratio_N.clamp(1 - clip_low, 1 + clip_high) * advantage_N
    loss_N = torch.maximum(raw_N, bounded_N)
    if dual_clip is not None:
        loss_N = torch.where(advantage_N < 0, torch.minimum(loss_N, -dual_clip * advantage_N), loss_N)
    is_clipped_N = bounded_N > raw_N
    return Surrogate(
        loss_N,
        clipped_low_N=is_clipped_N & (advantage_N < 0),
        clipped_high_N=is_clipped_N & (advantage_N > 0),
    )
