"""Log-probs and entropies of chosen tokens from hidden states, in chunks: the full logits never exist.

The backward pass computes a chunk's logits a second time and turns them into gradients at once, so the
memory is one chunk of logits whatever the number of tokens.
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
    return TokenStats(*_ChunkedStats.apply(hidden_ND, weight_VD, target_N, distribution))


def _chunks(num_tokens: int, vocabulary: int) -> list[slice]:
    size = max(1, CHUNK_BYTES // (4 * vocabulary))
    return [slice(i, min(i + size, num_tokens)) for i in range(0, num_tokens, size)]


class _Chunk(NamedTuple):
    logp_CV: Tensor
    """The most negative number outside of the kept set: exp of it is 0, and its product with 0 too."""
    slope_CV: Tensor | None
    """d logits / d products, where these differ"""


def _chunk(hidden_ND: Tensor, weight_VD: Tensor, distribution: Distribution, at: slice) -> _Chunk:
    logits_CV = hidden_ND[at] @ weight_VD.T
    if logits_CV.dtype in (torch.bfloat16, torch.float16):
        logits_CV = logits_CV.float()
    slope_CV = None
    if distribution.softcap is not None:
        tanh_CV = (logits_CV / distribution.softcap).tanh_()
        logits_CV, slope_CV = tanh_CV * distribution.softcap, 1 - tanh_CV.square()
    if distribution.temperature != 1.0:
        logits_CV /= distribution.temperature
    if distribution.kept is None:
        return _Chunk(torch.log_softmax(logits_CV, -1), slope_CV)
    logits_CV.masked_fill_(~_kept_mask(distribution.kept, at, len(weight_VD)), -torch.inf)
    return _Chunk(torch.log_softmax(logits_CV, -1).clamp_(min=torch.finfo(logits_CV.dtype).min), slope_CV)


def _kept_mask(kept: Kept, at: slice, vocabulary: int) -> Tensor:
    """[C, V] whether an id is in the set of a token."""
    sets = kept.take(np.arange(at.start, at.stop))
    mask_CV = torch.zeros(len(sets), vocabulary, dtype=torch.bool)
    owner_K = torch.from_numpy(np.repeat(np.arange(len(sets)), sets.lengths))
    mask_CV[owner_K, torch.from_numpy(sets.ids.astype(np.int64))] = True
    mask_CV[torch.from_numpy(sets.lengths == 0)] = True
    return mask_CV


class _ChunkedStats(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, distribution: Distribution
    ) -> tuple[Tensor, Tensor]:
        wide = torch.promote_types(hidden_ND.dtype, torch.float32)
        logp_N = torch.empty(len(target_N), dtype=wide)
        entropy_N = torch.empty(len(target_N), dtype=wide)
        for c in _chunks(len(target_N), len(weight_VD)):
            logp_CV, _ = _chunk(hidden_ND, weight_VD, distribution, c)
            logp_N[c] = logp_CV.gather(1, target_N[c, None])[:, 0]
            entropy_N[c] = -(logp_CV.exp() * logp_CV).sum(-1)
        ctx.save_for_backward(hidden_ND, weight_VD, target_N, entropy_N)
        ctx.distribution = distribution
        return logp_N, entropy_N

    @staticmethod
    def backward(
        ctx: Any, grad_logp_N: Tensor, grad_entropy_N: Tensor
    ) -> tuple[Tensor, Tensor | None, None, None]:
        hidden_ND, weight_VD, target_N, entropy_N = ctx.saved_tensors
        grad_hidden_ND = torch.empty_like(hidden_ND)
        # At least float32: sums of bfloat16 would depend on the number of chunks.
        wide = torch.promote_types(weight_VD.dtype, torch.float32)
        trained = ctx.needs_input_grad[1]  # beside adapters the head is frozen
        grad_weight_VD = torch.zeros_like(weight_VD, dtype=wide) if trained else None
        entropy_counts = bool(grad_entropy_N.any())
        for c in _chunks(len(target_N), len(weight_VD)):
            logp_CV, slope_CV = _chunk(hidden_ND, weight_VD, ctx.distribution, c)
            p_CV = logp_CV.exp()
            # d logp[target] / d logits = onehot − p;  d entropy / d logits = −p (log p + entropy)
            grad_CV = p_CV * -grad_logp_N[c, None]
            grad_CV.scatter_add_(1, target_N[c, None], grad_logp_N[c, None])
            if entropy_counts:
                grad_CV -= grad_entropy_N[c, None] * p_CV * (logp_CV + entropy_N[c, None])
            if ctx.distribution.temperature != 1.0:
                grad_CV /= ctx.distribution.temperature
            if slope_CV is not None:
                grad_CV *= slope_CV
            narrow_CV = grad_CV.to(weight_VD.dtype)
            grad_hidden_ND[c] = narrow_CV @ weight_VD
            if grad_weight_VD is None:
                continue
            if wide == weight_VD.dtype:
                grad_weight_VD.addmm_(grad_CV.T, hidden_ND[c])
            else:
                grad_weight_VD += narrow_CV.T @ hidden_ND[c]
        if grad_weight_VD is not None:
            grad_weight_VD = grad_weight_VD.to(weight_VD.dtype)
        return grad_hidden_ND, grad_weight_VD, None, None
