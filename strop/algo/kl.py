"""Per-token estimators of KL(policy ‖ reference) from one sampled token each (Schulman, "Approximating KL
Divergence", 2020)."""

from typing import Literal

import torch
from torch import Tensor

# N tokens

KlType = Literal["k1", "k2", "k3", "low_var_kl"]

LOG_RATIO_LIMIT = 20.0
"""Log-ratios are clamped to ± this before exp, which cannot overflow then."""

_LOW_VAR_LIMIT = 10.0


def estimate_kl(logp_N: Tensor, ref_N: Tensor, *, kind: KlType) -> Tensor:
    """[N] estimates in nats, differentiable in `logp_N`; with d = logp − ref:

    `k1` d, `k2` d² / 2, `k3` exp(−d) − 1 + d, `low_var_kl` k3 clamped to ±10. As a loss, k2 has the gradient
    of the reverse KL (d), k3 an approximation of it (1 − exp(−d)), and k1 none in expectation.
    """
    log_ratio_N = logp_N - ref_N
    if kind == "k1":
        return log_ratio_N
    if kind == "k2":
        return log_ratio_N.square() / 2
    limited_N = log_ratio_N.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    # expm1: near d = 0 the value is d² / 2, which float32 cannot tell from 0 once 1 was subtracted from exp.
    k3_N = torch.expm1(-limited_N) + limited_N
    return k3_N if kind == "k3" else k3_N.clamp(-_LOW_VAR_LIMIT, _LOW_VAR_LIMIT)
