"""The critic's loss: a value per token against its return; and how well the values foretold the returns."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.algo.base import Loss
from strop.algo.finite import check_trained
from strop.sample import all_equal

# N tokens


@dataclass(frozen=True, slots=True)
class ValueLoss:
    """Of N tokens."""

    loss_N: Tensor
    clipped_N: Tensor
    """bool: the value that was held back gave the larger loss; no gradient there."""


def clipped_value_loss(value_N: Tensor, old_N: Tensor, *, return_N: Tensor, clip: float | None) -> ValueLoss:
    """½ · max((v − R)², (v_c − R)²), v_c = old + clamp(v − old, ± clip); ½ (v − R)² with `clip` None.

    `old_N` are the values from which the returns were made (ratio-free counterpart of arXiv:1707.06347 eq. 7;
    slime leaves the ½ out). A value is in units of reward: no temperature divides it.
    """
    raw_N = (value_N - return_N).square() / 2
    if clip is None:
        return ValueLoss(raw_N, torch.zeros_like(raw_N, dtype=torch.bool))
    near_N = old_N + (value_N - old_N).clamp(-clip, clip)
    bounded_N = (near_N - return_N).square() / 2
    return ValueLoss(torch.maximum(raw_N, bounded_N), clipped_N=bounded_N > raw_N)


def critic_loss(
    value_N: Tensor, old_N: Tensor, *, return_N: Tensor, weight_N: Tensor, clip: float | None
) -> Loss:
    """Σ weight · `clipped_value_loss`, weights as in `LossInputs`; what an untrained token holds is ignored.

    Parts: `value_loss`, and `value_clip_frac`, the share of tokens that were held back. Raises NonFinite
    for a trained token of which a column is not a number.
    """
    is_trained_N = weight_N > 0
    check_trained(is_trained_N, value=value_N, **{"old value": old_N, "return": return_N})
    value_N, old_N, return_N = (torch.where(is_trained_N, x, 0) for x in (value_N, old_N, return_N))
    loss = clipped_value_loss(value_N, old_N, return_N=return_N, clip=clip)
    total = (weight_N * loss.loss_N).sum()
    parts = {"value_loss": total.detach(), "value_clip_frac": (weight_N * loss.clipped_N).sum()}
    return Loss(total, parts)


def value_metrics(
    value_N: NDArray[np.floating], return_N: NDArray[np.floating], mask_N: NDArray[np.bool_]
) -> dict[str, float]:
    """Of trained tokens, by plain means: `value_mean`, `return_mean`, and `explained_variance`,
    1 − Var(return − value) / Var(return): 1 is a perfect critic, 0 no better than a constant; there is none
    where all returns are equal. Empty where nothing is trained."""
    values, returns = value_N[mask_N].astype(np.float64), return_N[mask_N].astype(np.float64)
    if not len(values):
        return {}
    metrics = {"value_mean": float(values.mean()), "return_mean": float(returns.mean())}
    if not all_equal(returns):
        metrics["explained_variance"] = 1 - float((returns - values).var()) / float(returns.var())
    return metrics
