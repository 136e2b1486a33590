"""KTO: a loss of single responses that are each marked good or bad, no pairs (arXiv:2402.01306)."""

import torch
from torch import Tensor

# S responses, M of them scored against another prompt's response


def kto(
    logp_S: Tensor,
    ref_S: Tensor,
    *,
    is_desirable_S: Tensor,
    reference_point: Tensor,
    beta: float,
    desirable_weight: float,
    undesirable_weight: float,
) -> Tensor:
    """[S] λ · (1 − σ(± β (a − z))), a = logp − ref of summed log-probs; + and `desirable_weight` for a
    desirable response, − and `undesirable_weight` for another (eq. 8).

    `reference_point` z: `batch_kl` of the whole update; of a micro-batch, the loss would depend on the split.
    """
    gain_S = beta * (logp_S - ref_S - reference_point)
    # 1 − σ(x) is σ(−x), which keeps its digits where σ(x) is nearly 1.
    return torch.where(
        is_desirable_S, desirable_weight * (-gain_S).sigmoid(), undesirable_weight * gain_S.sigmoid()
    )


def batch_kl(logp_M: Tensor, ref_M: Tensor) -> Tensor:
    """z: the mean of logp − ref over responses that were paired with *another* prompt, at least 0; a scalar
    without gradient. It is a biased estimate of KL(policy ‖ reference), which is what the loss asks for."""
    return (logp_M - ref_M).detach().mean().clamp(min=0)
