"""log(1 − exp(x)): the log-probability of everything else, exact where that is nearly 0 or nearly 1."""

import math

import torch
from torch import Tensor

_LOG_HALF = -math.log(2)


def log1mexp(logp: Tensor) -> Tensor:
    """Of log-probabilities x < 0, elementwise and differentiable; by −expm1 above log ½ and by log1p below
    (Mächler, "Accurately computing log(1 − exp(−|a|))", 2012, eq. 7).

    A probability within rounding of 1 counts as 1 − eps of its type: value and gradient stay finite, and
    there the gradient is 0.
    """
    likely = logp.clamp(min=_LOG_HALF, max=-torch.finfo(logp.dtype).eps)
    unlikely = logp.clamp(max=_LOG_HALF)
    # Both branches are differentiated; the clamps keep the one that is not taken from a gradient of inf.
    return torch.where(logp > _LOG_HALF, torch.log(-torch.expm1(likely)), torch.log1p(-torch.exp(unlikely)))
