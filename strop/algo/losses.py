"""Per-token policy losses: values in, values out; the aggregation is applied by the caller.

All of them: NaN in, NaN out; callers put 0 where a token is not trained.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from strop.algo.kl import LOG_RATIO_LIMIT
from strop.algo.sequence import Sums, mean_of_sample

# N tokens


@dataclass(frozen=True, slots=True)
class Surrogate:
    """The clipped surrogate of N tokens."""

    loss_N: Tensor
    clipped_low_N: Tensor
    """bool: the lower bound 1 − clip_low changed the loss."""
    clipped_high_N: Tensor
    """bool: the upper bound 1 + clip_high did."""


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

    `dual_clip` c > 1 bounds it by c · |A| where A < 0 (arXiv:1912.09729). Clipped tokens have no gradient;
    those clipped low have negative advantages, those clipped high positive ones.
    """
    surrogate = _pessimistic(_ratio(logp_N - old_N), advantage_N, clip_low=clip_low, clip_high=clip_high)
    if dual_clip is None:
        return surrogate
    bounded_N = torch.minimum(surrogate.loss_N, -dual_clip * advantage_N)
    return replace(surrogate, loss_N=torch.where(advantage_N < 0, bounded_N, surrogate.loss_N))


def cispo(
    logp_N: Tensor, old_N: Tensor, *, advantage_N: Tensor, clip_high: float, clip_low: float = math.inf
) -> Surrogate:
    """CISPO (MiniMax-M1, arXiv:2506.13585): −clip(r, 1 − clip_low, 1 + clip_high) · A · logp, the clipped
    ratio detached: every token keeps a gradient. The canonical form has no lower bound, i.e. clip_low ≥ 1."""
    ratio_N = _ratio(logp_N - old_N).detach()
    low, high = 1 - clip_low, 1 + clip_high
    counts_N = advantage_N != 0
    return Surrogate(
        -ratio_N.clamp(low, high) * advantage_N * logp_N,
        clipped_low_N=(ratio_N < low) & counts_N,
        clipped_high_N=(ratio_N > high) & counts_N,
    )


def gspo(
    logp_N: Tensor,
    old_N: Tensor,
    *,
    advantage_N: Tensor,
    mask_N: Tensor,
    sums: Sums,
    clip_low: float,
    clip_high: float,
) -> Surrogate:
    """GSPO (arXiv:2507.18071 eq. 5): max(−s · A, −clip(s) · A) with a sample's ratio
    s = exp(mean(logp − old)) and its advantage, which is the mean of its tokens' if these differ.

    `mask_N`, bool: trained tokens, over which means are taken, over all turns of the sample. The loss of a
    sample is the mean of its tokens': aggregate by `seq_mean_token_mean`. Value and gradient are then those
    of the equation, although they are computed token by token (`gspo_token`).
    """
    return gspo_token(
        logp_N,
        old_N,
        advantage_N=mean_of_sample(advantage_N, mask_N, sums),
        mask_N=mask_N,
        sums=sums,
        clip_low=clip_low,
        clip_high=clip_high,
    )


def gspo_token(
    logp_N: Tensor,
    old_N: Tensor,
    *,
    advantage_N: Tensor,
    mask_N: Tensor,
    sums: Sums,
    clip_low: float,
    clip_high: float,
) -> Surrogate:
    """GSPO-token (arXiv:2507.18071 §4.3): a token's ratio is s · π / sg(π), s its sample's as in `gspo`,
    detached; each token keeps its own advantage."""
    mean_N = mean_of_sample(logp_N - old_N, mask_N, sums)
    # The difference is exactly 0; it carries the gradient.
    ratio_N = _ratio(mean_N) * (logp_N - logp_N.detach()).exp()
    return _pessimistic(ratio_N, advantage_N, clip_low=clip_low, clip_high=clip_high)


def _ratio(log_ratio_N: Tensor) -> Tensor:
    return log_ratio_N.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()


def _pessimistic(ratio_N: Tensor, advantage_N: Tensor, *, clip_low: float, clip_high: float) -> Surrogate:
    """The larger of the losses with and without bounds on the ratio."""
    raw_N = -ratio_N * advantage_N
    bounded_N = -ratio_N.clamp(1 - clip_low, 1 + clip_high) * advantage_N
    is_clipped_N = bounded_N > raw_N
    return Surrogate(
        torch.maximum(raw_N, bounded_N),
        clipped_low_N=is_clipped_N & (advantage_N < 0),
        clipped_high_N=is_clipped_N & (advantage_N > 0),
    )
