"""Log-probs and entropies of chosen tokens from hidden states, in chunks: the full logits never exist.

The backward pass computes a chunk's logits a second time and turns them into gradients at once, so the
memory is one chunk of logits whatever the number of tokens.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

# N tokens, D hidden size, V vocabulary, C tokens of a chunk

CHUNK_BYTES = 64 * 2**20
"""Logits of one chunk in float32: large enough for full matrix-product speed, small beside a model."""


class TokenStats(NamedTuple):
    logp_N: Tensor
    """float32 (or wider) log-prob of each target at the given temperature"""
    entropy_N: Tensor
    """entropy of the whole distribution, in nats"""


def token_stats(hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, *, temperature: float) -> TokenStats:
    """log softmax(hidden · weightᵀ / temperature) at `target_N`, and the entropy; both differentiable."""
    return TokenStats(*_ChunkedStats.apply(hidden_ND, weight_VD, target_N, temperature))


def _chunks(num_tokens: int, vocabulary: int) -> list[slice]:
    size = max(1, CHUNK_BYTES // (4 * vocabulary))
    return [slice(i, min(i + size, num_tokens)) for i in range(0, num_tokens, size)]


def _log_softmax(hidden_CD: Tensor, weight_VD: Tensor, temperature: float) -> Tensor:
    logits_CV = hidden_CD @ weight_VD.T
    if logits_CV.dtype in (torch.bfloat16, torch.float16):
        logits_CV = logits_CV.float()
    if temperature != 1.0:
        logits_CV /= temperature
    return torch.log_softmax(logits_CV, -1)


class _ChunkedStats(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, temperature: float
    ) -> tuple[Tensor, Tensor]:
        wide = torch.promote_types(hidden_ND.dtype, torch.float32)
        logp_N = torch.empty(len(target_N), dtype=wide)
        entropy_N = torch.empty(len(target_N), dtype=wide)
        for c in _chunks(len(target_N), len(weight_VD)):
            logp_CV = _log_softmax(hidden_ND[c], weight_VD, temperature)
            logp_N[c] = logp_CV.gather(1, target_N[c, None])[:, 0]
            entropy_N[c] = -(logp_CV.exp() * logp_CV).sum(-1)
        ctx.save_for_backward(hidden_ND, weight_VD, target_N, entropy_N)
        ctx.temperature = temperature
        return logp_N, entropy_N

    @staticmethod
    def backward(ctx: Any, grad_logp_N: Tensor, grad_entropy_N: Tensor) -> tuple[Tensor, Tensor, None, None]:
        hidden_ND, weight_VD, target_N, entropy_N = ctx.saved_tensors
        grad_hidden_ND = torch.empty_like(hidden_ND)
        # At least float32: sums of bfloat16 would depend on the number of chunks.
        wide = torch.promote_types(weight_VD.dtype, torch.float32)
        grad_weight_VD = torch.zeros_like(weight_VD, dtype=wide)
        entropy_counts = bool(grad_entropy_N.any())
        for c in _chunks(len(target_N), len(weight_VD)):
            logp_CV = _log_softmax(hidden_ND[c], weight_VD, ctx.temperature)
            p_CV = logp_CV.exp()
            # d logp[target] / d logits = onehot − p;  d entropy / d logits = −p (log p + entropy)
            grad_CV = p_CV * -grad_logp_N[c, None]
            grad_CV.scatter_add_(1, target_N[c, None], grad_logp_N[c, None])
            if entropy_counts:
                grad_CV -= grad_entropy_N[c, None] * p_CV * (logp_CV + entropy_N[c, None])
            if ctx.temperature != 1.0:
                grad_CV /= ctx.temperature
            narrow_CV = grad_CV.to(weight_VD.dtype)
            grad_hidden_ND[c] = narrow_CV @ weight_VD
            if wide == weight_VD.dtype:
                grad_weight_VD.addmm_(grad_CV.T, hidden_ND[c])
            else:
                grad_weight_VD += narrow_CV.T @ hidden_ND[c]
        return grad_hidden_ND, grad_weight_VD.to(weight_VD.dtype), None, None
