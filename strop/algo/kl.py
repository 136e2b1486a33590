"""KL(policy ‖ reference): estimators from one sampled token each (Schulman, "Approximating KL Divergence",
2020), and the exact value where the whole vocabulary is known."""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# N tokens, V vocabulary

KlType = Literal["k1", "k2", "k3", "low_var_kl", "k3+"]

LOG_RATIO_LIMIT = 20.0
"""Log-ratios are clamped to ± this before exp, which cannot overflow then."""

_LOW_VAR_LIMIT = 10.0


def estimate_kl(logp_N: Tensor, ref_N: Tensor, *, kind: KlType, old_N: Tensor | None = None) -> Tensor:
    """[N] estimates in nats, differentiable in `logp_N`; with d = logp − ref:

    `k1` d, `k2` d² / 2, `k3` exp(−d) − 1 + d, `low_var_kl` k3 clamped to ±10, `k3+` the value of k3 with the
    gradient of k2. As a loss, k2 has the gradient of the reverse KL (d), k3 an approximation of it
    (1 − exp(−d)), and k1 none in expectation.

    With `old_N`, log-probs of the policy that sampled, the estimate is multiplied by w = exp(logp − old),
    with gradient (DeepSeek-V3.2, arXiv:2512.02556), before `low_var_kl` clamps it: of k3 the gradient is
    then w · d, that of the reverse KL itself.
    """
    estimate_N = _estimate(logp_N - ref_N, kind)
    if old_N is not None:
        estimate_N = estimate_N * (logp_N - old_N).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()
    return estimate_N.clamp(-_LOW_VAR_LIMIT, _LOW_VAR_LIMIT) if kind == "low_var_kl" else estimate_N


def _estimate(log_ratio_N: Tensor, kind: KlType) -> Tensor:
    if kind == "k1":
        return log_ratio_N
    k2_N = log_ratio_N.square() / 2
    if kind == "k2":
        return k2_N
    limited_N = log_ratio_N.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    # expm1: near d = 0 the value is d² / 2, which float32 cannot tell from 0 once 1 was subtracted from exp.
    k3_N = torch.expm1(-limited_N) + limited_N
    return k3_N.detach() + (k2_N - k2_N.detach()) if kind == "k3+" else k3_N


def kl_values(
    logp: NDArray[np.floating[Any]], ref: NDArray[np.floating[Any]], *, kind: KlType
) -> NDArray[np.float64]:
    """`estimate_kl` of columns, without gradient, for a KL that is part of the reward. NaN stays NaN."""
    estimate_N = estimate_kl(
        torch.from_numpy(logp.astype(np.float64)), torch.from_numpy(ref.astype(np.float64)), kind=kind
    )
    return np.asarray(estimate_N.numpy(), np.float64)


def exact_kl(logp_NV: Tensor, other_NV: Tensor) -> Tensor:
    """[N] Σ p · (log p − log q) over the vocabulary, in nats, p and q given as log-probs. What p cannot draw
    (−inf) adds nothing."""
    is_drawn_NV = logp_NV > -torch.inf
    # `where` before the product: 0 · (−inf − −inf) is NaN, in the gradient even if it is masked afterwards.
    p_NV = torch.where(is_drawn_NV, logp_NV, 0)
    q_NV = torch.where(is_drawn_NV, other_NV, 0)
    return (torch.where(is_drawn_NV, p_NV.exp(), 0) * (p_NV - q_NV)).sum(-1)


def jensen_shannon(logp_NV: Tensor, other_NV: Tensor, *, share: float = 0.5) -> Tensor:
    """[N] share · KL(p ‖ m) + (1 − share) · KL(q ‖ m) with m = share · p + (1 − share) · q, 0 < share < 1
    (generalised JSD, arXiv:2306.13649)."""
    log_share = torch.tensor([share, 1 - share], dtype=logp_NV.dtype, device=logp_NV.device).log()
    # Of two −inf, the sum of logs has a gradient of NaN: what neither can draw is kept out of it.
    is_out_NV = torch.maximum(logp_NV, other_NV) == -torch.inf
    mixed_NV = torch.logaddexp(
        logp_NV.masked_fill(is_out_NV, 0) + log_share[0], other_NV.masked_fill(is_out_NV, 0) + log_share[1]
    )
    return share * exact_kl(logp_NV, mixed_NV) + (1 - share) * exact_kl(other_NV, mixed_NV)
