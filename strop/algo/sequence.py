"""Sums over the tokens of a sample, which may lie on several ranks: every token is told its sample's sum.

Formulas of whole samples take the summing as an argument. What is summed is detached, so that no gradient has
to cross from rank to rank.
"""

from collections.abc import Callable

import torch
from torch import Tensor

# N tokens, S samples

Sums = Callable[[Tensor], Tensor]
"""[N] → [N]: each token gets the sum over all tokens of its sample, those of other ranks included."""


def sums_by_sample(sample_N: Tensor) -> Sums:
    """Of one rank that holds its samples whole; `sample_N` are integers, one for the tokens of a sample.

    Added up in float64 and returned in the dtype of the values.
    """
    rows, row_N = torch.unique(sample_N, return_inverse=True)

    def sums(value_N: Tensor) -> Tensor:
        sum_S = torch.zeros(len(rows), dtype=torch.float64, device=value_N.device)
        return sum_S.index_add_(0, row_N, value_N.double())[row_N].to(value_N.dtype)

    return sums


def mean_of_sample(value_N: Tensor, mask_N: Tensor, sums: Sums) -> Tensor:
    """[N] the mean over the tokens of a token's sample where the bool `mask_N` is true, detached; 0 where it
    is true nowhere. What other tokens hold is ignored, also NaN."""
    value_N = torch.where(mask_N, value_N.detach(), 0)
    return sums(value_N) / sums(mask_N.to(value_N.dtype)).clamp(min=1)
