"""How far a student's next-token distribution is from a teacher's, over the whole vocabulary, in chunks.

From hidden states to one number a token: neither model's logits exist for more than a few chunks of tokens,
forward or backward. As in `logprobs.py`, the first chunks wait for the backward pass and later ones are
computed a second time.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from strop.nn.logprobs import (
    WAITING_CHUNKS,
    Distribution,
    chunk_buffer,
    chunk_logits,
    chunks_of,
    sum_into,
)
from strop.nn.product import factor, wide_type

# N tokens, D and E hidden sizes, V vocabulary, C tokens of a chunk, K bins, M classes: V or K


@dataclass(frozen=True, slots=True)
class Measure:
    """Which divergence."""

    beta: float = 1.0
    """Of the generalised Jensen–Shannon divergence (arXiv:2306.13649), the teacher's weight: 1 is
    KL(student ‖ teacher), 0 is KL(teacher ‖ student), as in TRL."""
    top_k: int | None = None
    """Compare the probabilities of so many ids, those that the student finds likeliest, and of all others
    together. None: of every id."""


@dataclass(frozen=True, slots=True)
class Predictor:
    """A model's hidden states and what turns them into distributions."""

    hidden_ND: Tensor
    head_VD: Tensor
    distribution: Distribution


def divergence(student: Predictor, teacher: Predictor, measure: Measure) -> Tensor:
    """[N] in nats, float32 or wider; differentiable in the student's hidden states and head. Both have the
    same vocabulary."""
    waits = torch.is_grad_enabled() and (student.hidden_ND.requires_grad or student.head_VD.requires_grad)
    given: Tensor = _ChunkedDivergence.apply(
        student.hidden_ND, student.head_VD, _Fixed(student.distribution, teacher, measure, waits)
    )
    return given


@dataclass(frozen=True, slots=True)
class _Fixed:
    """What has no gradient."""

    of: Distribution
    teacher: Predictor
    measure: Measure
    waits: bool


class _ChunkedDivergence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden_ND: Tensor, head_VD: Tensor, fixed: _Fixed) -> Tensor:
        chunks = _Chunks(hidden_ND, head_VD, fixed)
        divergence_N = hidden_ND.new_empty(len(hidden_ND), dtype=wide_type(hidden_ND.dtype))
        waiting = []
        for i, c in enumerate(chunks.slices):
            divergence_N[c], slope_VC = chunks.measured(c)
            if fixed.waits and i < WAITING_CHUNKS:
                waiting.append(slope_VC)
        ctx.save_for_backward(hidden_ND, head_VD)
        ctx.fixed, ctx.waiting = fixed, waiting
        return divergence_N

    @staticmethod
    def backward(ctx: Any, grad_N: Tensor) -> tuple[Tensor, Tensor | None, None]:
        hidden_ND, head_VD = ctx.saved_tensors
        waiting, ctx.waiting = ctx.waiting, []
        chunks = _Chunks(hidden_ND, head_VD, ctx.fixed)
        grad_hidden_ND = torch.zeros_like(hidden_ND)
        trained = ctx.needs_input_grad[1]  # beside adapters the head is frozen
        grad_head_VD = torch.zeros_like(head_VD, dtype=wide_type(head_VD.dtype)) if trained else None
        for i, c in enumerate(chunks.slices):
            slope_VC = waiting[i] if i < len(waiting) else chunks.measured(c)[1]
            rounded_VC = factor((slope_VC * grad_N[c]).to(head_VD.dtype))
            grad_hidden_ND[c] = (chunks.head_VD.t() @ rounded_VC).t()
            if grad_head_VD is not None:
                sum_into(grad_head_VD, rounded_VC, chunks.hidden_ND[c], is_first=i == 0)
        return grad_hidden_ND, None if grad_head_VD is None else grad_head_VD.to(head_VD.dtype), None


class _Chunks:
    """Both sides, some tokens at a time."""

    def __init__(self, hidden_ND: Tensor, head_VD: Tensor, fixed: _Fixed) -> None:
        self._of, self._teacher, self._measure = fixed.of, fixed.teacher, fixed.measure
        self.hidden_ND, self.head_VD = factor(hidden_ND), factor(head_VD)
        self._seen_NE, self._theirs_VE = factor(fixed.teacher.hidden_ND), factor(fixed.teacher.head_VD)
        self.slices = chunks_of(len(hidden_ND), len(head_VD))

    def measured(self, at: slice) -> tuple[Tensor, Tensor]:
        """[C], and its gradient [V, C] by the products of head and hidden states."""
        student_VC, slope_VC = _logp(self.hidden_ND, self.head_VD, self._of, at)
        teacher_VC, _ = _logp(self._seen_NE, self._theirs_VE, self._teacher.distribution, at)
        if self._measure.top_k is None:
            divergence_C, gradient_VC = _compared(student_VC, teacher_VC, self._measure.beta)
        else:
            divergence_C, gradient_VC = _binned(student_VC, teacher_VC, self._measure)
        gradient_VC /= self._of.temperature
        return divergence_C, gradient_VC if slope_VC is None else gradient_VC.mul_(slope_VC)


def _logp(hidden_ND: Tensor, head_VD: Tensor, of: Distribution, at: slice) -> tuple[Tensor, Tensor | None]:
    """[V, C] log-probs, finite also outside of a kept set, and d logits / d products where these differ."""
    buffer = chunk_buffer(hidden_ND, head_VD, [at])
    z_VC, slope_VC = chunk_logits(hidden_ND, head_VD, of, at, buffer)
    z_VC -= z_VC.logsumexp(0)
    return z_VC.clamp_(min=torch.finfo(z_VC.dtype).min), slope_VC


def _compared(student_MC: Tensor, teacher_MC: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """[C] the divergence of log-probs over M classes, and its gradient [M, C] by the student's logits.

    For a sum over classes of f(p, q), the gradient is p (f′ − Σ p f′) with f′ by p.
    """
    p_MC = student_MC.exp()
    if beta == 0:
        q_MC = teacher_MC.exp()
        return (q_MC * (teacher_MC - student_MC)).sum(0), p_MC - q_MC
    if beta == 1:
        slope_MC, rest_C = student_MC - teacher_MC, torch.zeros_like(p_MC[0])
    else:
        both_MC = torch.logaddexp(student_MC + math.log1p(-beta), teacher_MC + math.log(beta))
        slope_MC = (1 - beta) * (student_MC - both_MC)
        rest_C = beta * (teacher_MC.exp() * (teacher_MC - both_MC)).sum(0)
    mean_C = (p_MC * slope_MC).sum(0)
    return mean_C + rest_C, p_MC.mul_(slope_MC.sub_(mean_C))


def _binned(student_VC: Tensor, teacher_VC: Tensor, measure: Measure) -> tuple[Tensor, Tensor]:
    """`_compared` over the likeliest ids and the rest, with the gradient [V, C] of every id's logit: one in
    the rest takes its share of that of the rest."""
    assert measure.top_k is not None
    chosen_KC = student_VC.topk(min(measure.top_k, len(student_VC)), dim=0).indices
    student_MC, teacher_MC = (_with_rest(logp_VC, chosen_KC) for logp_VC in (student_VC, teacher_VC))
    divergence_C, gradient_MC = _compared(student_MC, teacher_MC, measure.beta)
    share_VC = (student_VC - student_MC[-1]).exp_()
    gradient_VC = share_VC.mul_(gradient_MC[-1]).scatter_(0, chosen_KC, gradient_MC[:-1])
    return divergence_C, gradient_VC


def _with_rest(logp_VC: Tensor, chosen_KC: Tensor) -> Tensor:
    """[K + 1, C]. The rest is summed, not taken from 1: it may be far below rounding."""
    rest_C = logp_VC.exp().scatter_(0, chosen_KC, 0).sum(0).clamp_(min=torch.finfo(logp_VC.dtype).tiny)
    return torch.cat([logp_VC.gather(0, chosen_KC), rest_C.log()[None]])
