"""Log-probs and entropies of chosen tokens from hidden states, in chunks: the full logits never exist.

Logits of the first chunks wait for the backward pass; those of later ones are computed a second time there
and turned into gradients at once, so that the memory is some chunks of logits whatever the number of tokens.
A chunk is overwritten in place where it can be: fresh memory costs more than the arithmetic.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from strop.kept import Kept

# N tokens, D hidden size, V vocabulary, C tokens of a chunk, K kept ids

CHUNK_BYTES = 64 * 2**20
"""Logits of one chunk in float32: large enough for full matrix-product speed, small beside a model."""
WAITING_CHUNKS = 2
"""Chunks whose logits are not computed twice. With them the backward pass takes as much memory as forward."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """How the products hidden · weightᵀ become the distribution that tokens are drawn from."""

    temperature: float = 1.0
    softcap: float | None = None
    """Logits are softcap · tanh(products / softcap), before the temperature; None: the products."""
    kept: Kept | None = None
    """A set of ids for each of the N tokens, to which its distribution is confined. None, or an empty set:
    the whole vocabulary."""


class TokenStats(NamedTuple):
    logp_N: Tensor
    """float32 (or wider) log-prob of each target under the distribution"""
    entropy_N: Tensor
    """entropy of the distribution, in nats"""


def token_stats(
    hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, distribution: Distribution
) -> TokenStats:
    """Log-probs of `target_N`, and entropies; both differentiable. A target must be in its kept set."""
    waits = torch.is_grad_enabled() and (hidden_ND.requires_grad or weight_VD.requires_grad)
    return TokenStats(*_ChunkedStats.apply(hidden_ND, weight_VD, target_N, distribution, waits))


def _chunks(num_tokens: int, vocabulary: int) -> list[slice]:
    size = max(1, CHUNK_BYTES // (4 * vocabulary))
    return [slice(i, min(i + size, num_tokens)) for i in range(0, num_tokens, size)]


def _buffer(hidden_ND: Tensor, weight_VD: Tensor, chunks: list[slice]) -> Tensor:
    """For the logits of any of `chunks`."""
    tokens = max((c.stop - c.start for c in chunks), default=0)
    wide = torch.promote_types(hidden_ND.dtype, torch.float32)
    return torch.empty(tokens, len(weight_VD), dtype=wide)


def _logits(
    hidden_CD: Tensor, weight_VD: Tensor, of: Distribution, at: slice, buffer_CV: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Into the buffer: logits less the largest of their token; and d logits / d products, where these differ.
    Outside of the kept set the most negative number: exp of it is 0, and its product with 0 too."""
    z_CV, slope_CV = buffer_CV[: len(hidden_CD)], None
    if hidden_CD.dtype == z_CV.dtype:
        torch.mm(hidden_CD, weight_VD.T, out=z_CV)
    else:
        z_CV.copy_(hidden_CD @ weight_VD.T)
    if of.softcap is not None:
        z_CV.div_(of.softcap).tanh_()
        slope_CV = 1 - z_CV.square()
        z_CV *= of.softcap
    if of.temperature != 1.0:
        z_CV /= of.temperature
    if of.kept is not None:
        z_CV.masked_fill_(~_kept_mask(of.kept, at, len(weight_VD)), -torch.inf)
    z_CV -= z_CV.amax(-1, keepdim=True)
    if of.kept is not None:
        z_CV.clamp_(min=torch.finfo(z_CV.dtype).min)
    return z_CV, slope_CV


def _kept_mask(kept: Kept, at: slice, vocabulary: int) -> Tensor:
    """[C, V] whether an id is in the set of a token."""
    sets = kept.take(np.arange(at.start, at.stop))
    mask_CV = torch.zeros(len(sets), vocabulary, dtype=torch.bool)
    owner_K = torch.from_numpy(np.repeat(np.arange(len(sets)), sets.lengths))
    mask_CV[owner_K, torch.from_numpy(sets.ids.astype(np.int64))] = True
    mask_CV[torch.from_numpy(sets.lengths == 0)] = True
    return mask_CV


def _turn_into_gradients(z_CV: Tensor, log_sum_C: Tensor, of_logp_C: Tensor, of_entropy_C: Tensor) -> None:
    """In place, but for the target's own share.
    d logp[target] / d logits = onehot − p;  d entropy / d logits = −p (log p + entropy)"""
    z_CV -= log_sum_C[:, None]
    if not of_entropy_C.any():
        z_CV.exp_().mul_(-of_logp_C[:, None])
        return
    p_CV = z_CV.exp()
    entropy_C = -_dots(p_CV, z_CV)
    # p first: outside of the kept set it is 0, and another factor would overflow
    z_CV.add_(entropy_C[:, None]).mul_(p_CV).mul_(of_entropy_C[:, None])
    z_CV.addcmul_(p_CV, of_logp_C[:, None]).neg_()


def _dots(a_CV: Tensor, b_CV: Tensor) -> Tensor:
    """Of rows, without a third matrix."""
    return torch.bmm(a_CV[:, None, :], b_CV[:, :, None])[:, 0, 0]


class _ChunkedStats(torch.autograd.Function):
    @staticmethod
    def forward(  # noqa: PLR0913, PLR0917 - autograd passes them one by one
        ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, of: Distribution, waits: bool
    ) -> tuple[Tensor, Tensor]:
        chunks = _chunks(len(target_N), len(weight_VD))
        exp_CV = _buffer(hidden_ND, weight_VD, chunks)
        buffer_CV, waiting = exp_CV, []
        logp_N, entropy_N, log_sum_N = (exp_CV.new_empty(len(target_N)) for _ in range(3))
        for i, c in enumerate(chunks):
            if i == 0 or (waits and i <= WAITING_CHUNKS):
                buffer_CV = _buffer(hidden_ND, weight_VD, chunks[i:])
            z_CV, slope_CV = _logits(hidden_ND[c], weight_VD, of, c, buffer_CV)
            if waits and i < WAITING_CHUNKS:
                waiting.append((z_CV, slope_CV))
            e_CV = torch.exp(z_CV, out=exp_CV[: len(z_CV)])
            sum_C = e_CV.sum(-1)
            log_sum_N[c] = sum_C.log()
            logp_N[c] = z_CV.gather(1, target_N[c, None])[:, 0] - log_sum_N[c]
            entropy_N[c] = log_sum_N[c] - _dots(e_CV, z_CV) / sum_C
        ctx.save_for_backward(hidden_ND, weight_VD, target_N, log_sum_N)
        ctx.distribution, ctx.waiting = of, waiting
        return logp_N, entropy_N

    @staticmethod
    def backward(
        ctx: Any, grad_logp_N: Tensor, grad_entropy_N: Tensor
    ) -> tuple[Tensor, Tensor | None, None, None, None]:
        hidden_ND, weight_VD, target_N, log_sum_N = ctx.saved_tensors
        of: Distribution = ctx.distribution
        waiting, ctx.waiting = ctx.waiting, []
        chunks = _chunks(len(target_N), len(weight_VD))
        buffer_CV = _buffer(hidden_ND, weight_VD, chunks[len(waiting) :])
        grad_hidden_ND = torch.empty_like(hidden_ND)
        # At least float32: sums of bfloat16 would depend on the number of chunks.
        wide = torch.promote_types(weight_VD.dtype, torch.float32)
        trained = ctx.needs_input_grad[1]  # beside adapters the head is frozen
        grad_weight_VD = torch.empty_like(weight_VD, dtype=wide) if trained else None
        if grad_weight_VD is not None and not chunks:
            grad_weight_VD.zero_()
        for i, c in enumerate(chunks):
            z_CV, slope_CV = (
                waiting[i] if i < len(waiting) else _logits(hidden_ND[c], weight_VD, of, c, buffer_CV)
            )
            of_logp_C = grad_logp_N[c] / of.temperature
            _turn_into_gradients(z_CV, log_sum_N[c], of_logp_C, grad_entropy_N[c] / of.temperature)
            z_CV.scatter_add_(1, target_N[c, None], of_logp_C[:, None])
            if slope_CV is not None:
                z_CV *= slope_CV
            narrow_CV = z_CV.to(weight_VD.dtype)
            torch.mm(narrow_CV, weight_VD, out=grad_hidden_ND[c])
            if grad_weight_VD is None:
                continue
            if wide == weight_VD.dtype:
                # beta = 0: what was in the memory is ignored
                grad_weight_VD.addmm_(z_CV.T, hidden_ND[c], beta=min(i, 1))
            elif i == 0:
                grad_weight_VD.copy_(narrow_CV.T @ hidden_ND[c])
            else:
                grad_weight_VD += narrow_CV.T @ hidden_ND[c]
        if grad_weight_VD is not None:
            grad_weight_VD = grad_weight_VD.to(weight_VD.dtype)
        return grad_hidden_ND, grad_weight_VD, None, None, None
