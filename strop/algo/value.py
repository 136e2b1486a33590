"""The critic's loss: a value per token against its return."""

from dataclasses import dataclass

import torch
from torch import Tensor

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
