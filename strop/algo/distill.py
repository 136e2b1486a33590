"""On-policy distillation: the student is drawn to a teacher on the tokens that the student sampled.

Teacher and student score the same token ids, at the temperature of sampling (slime#2085, verl#6867).
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.algo.batch import Batch
from strop.algo.kl import exact_kl, jensen_shannon
from strop.algo.log1mexp import log1mexp

# N tokens, V vocabulary, K chosen ids


def reverse_kl_advantage(
    student_N: NDArray[np.float32], teacher_N: NDArray[np.float32], *, coef: float
) -> NDArray[np.float32]:
    """[N] −coef · (student − teacher), log-probs of the sampled tokens: each token pays for its own share of
    KL(student ‖ teacher) and for no later one. Added to whatever advantage the reward gives.

    Its mean over the student's own samples is −coef · KL.
    """
    advantage_N: NDArray[np.float32] = coef * (teacher_N - student_N)
    return advantage_N


def distilled(batch: Batch, student_N: NDArray[np.float32], *, coef: float) -> NDArray[np.float32]:
    """[N] `reverse_kl_advantage` of a step's trained tokens, 0 where no teacher was asked."""
    teacher_N = batch.scored["teacher"]
    is_taught_N = batch.mask & ~np.isnan(teacher_N)
    student_N, teacher_N = (np.where(is_taught_N, x, np.float32(0)) for x in (student_N, teacher_N))
    return reverse_kl_advantage(student_N, teacher_N, coef=coef)


def reverse_kl(student_NV: Tensor, teacher_NV: Tensor) -> Tensor:
    """[N] KL(student ‖ teacher) over the whole vocabulary, as a loss: no sampling noise but that of the
    tokens before. Log-probs, differentiable in the student."""
    return exact_kl(student_NV, teacher_NV.detach())


def top_k_reverse_kl(student_NK: Tensor, teacher_NK: Tensor) -> Tensor:
    """[N] the same over K + 1 bins: the K ids whose log-probs are given, and all others together.

    Never above the whole one (data-processing inequality). Which ids is the caller's choice; both have
    the same.
    """
    return exact_kl(_with_tail(student_NK), _with_tail(teacher_NK.detach()))


def gkd(student_NV: Tensor, teacher_NV: Tensor, *, beta: float) -> Tensor:
    """[N] the generalised Jensen–Shannon divergence, `beta` in [0, 1] the weight of the teacher
    (arXiv:2306.13649); the ends, where it vanishes, are KLs, as in TRL: 0 is KL(teacher ‖ student), 1 is
    KL(student ‖ teacher)."""
    teacher_NV = teacher_NV.detach()
    if beta == 0:
        return exact_kl(teacher_NV, student_NV)
    if beta == 1:
        return exact_kl(student_NV, teacher_NV)
    return jensen_shannon(teacher_NV, student_NV, share=beta)


def _with_tail(logp_NK: Tensor) -> Tensor:
    """[N, K + 1]"""
    tail_N = log1mexp(logp_NK.logsumexp(-1))
    return torch.cat([logp_NK, tail_N[:, None]], dim=-1)
