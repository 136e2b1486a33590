"""Log-probs and entropies of chosen tokens from hidden states, in chunks: the full logits never exist.

Logits of the first chunks wait for the backward pass; those of later ones are computed a second time there
and turned into gradients at once, so that the memory is some chunks of logits whatever the number of tokens.
A chunk is overwritten in place where it can be: fresh memory costs more than the arithmetic. Tokens are its
columns, as in `nn/product.py`: so the machine multiplies fastest, up to half as fast again.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from strop.kept import Kept
from strop.nn.product import EVEN, factor, wide_type

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


def chunks_of(num_tokens: int, vocabulary: int) -> list[slice]:
    size = max(1, CHUNK_BYTES // (4 * vocabulary))
    if size > EVEN:
        size -= size % EVEN
    return [slice(i, min(i + size, num_tokens)) for i in range(0, num_tokens, size)]


def chunk_buffer(hidden_ND: Tensor, weight_VD: Tensor, chunks: list[slice]) -> Tensor:
    """For the logits of any of `chunks`, one after another."""
    tokens = max((c.stop - c.start for c in chunks), default=0)
    return torch.empty(tokens * len(weight_VD), dtype=wide_type(hidden_ND.dtype))


def part_of(buffer: Tensor, weight_VD: Tensor, at: slice) -> Tensor:
    """[V, C] of a buffer, in one piece."""
    shape = len(weight_VD), at.stop - at.start
    return buffer[: shape[0] * shape[1]].view(shape)


def chunk_logits(
    hidden_ND: Tensor, weight_VD: Tensor, of: Distribution, at: slice, buffer: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Into the buffer: logits less the largest of their token; and d logits / d products, where these differ.
    Outside of the kept set the most negative number: exp of it is 0, and its product with 0 too."""
    z_VC, slope_VC = part_of(buffer, weight_VD, at), None
    if weight_VD.dtype == z_VC.dtype:
        torch.mm(weight_VD, hidden_ND[at].t(), out=z_VC)
    else:
        z_VC.copy_(weight_VD @ hidden_ND[at].t())
    if of.softcap is not None:
        z_VC.div_(of.softcap).tanh_()
        slope_VC = 1 - z_VC.square()
        z_VC *= of.softcap
    if of.temperature != 1.0:
        z_VC /= of.temperature
    if of.kept is not None:
        z_VC.masked_fill_(_left_out(of.kept, at, len(weight_VD)), -torch.inf)
    z_VC -= z_VC.amax(0)
    if of.kept is not None:
        z_VC.clamp_(min=torch.finfo(z_VC.dtype).min)
    return z_VC, slope_VC


def _left_out(kept: Kept, at: slice, vocabulary: int) -> Tensor:
    """[V, C] whether an id is outside of the set of a token."""
    sets = kept.take(np.arange(at.start, at.stop))
    mask_VC = torch.ones(vocabulary, len(sets), dtype=torch.bool)
    owner_K = torch.from_numpy(np.repeat(np.arange(len(sets)), sets.lengths))
    mask_VC[torch.from_numpy(sets.ids.astype(np.int64)), owner_K] = False
    mask_VC[:, torch.from_numpy(sets.lengths == 0)] = False
    return mask_VC


@dataclass(frozen=True, slots=True)
class _Upstream:
    """What the gradient of a chunk's logits is made of."""

    log_sum_C: Tensor
    entropy_C: Tensor
    of_logp_C: Tensor
    of_entropy_C: Tensor


def _turn_into_gradients(z_VC: Tensor, up: _Upstream) -> None:
    """In place, but for the target's own share.
    d logp[target] / d logits = onehot − p;  d entropy / d logits = −p (log p + entropy)"""
    z_VC -= up.log_sum_C
    if not up.of_entropy_C.any():
        z_VC.exp_().mul_(-up.of_logp_C)
        return
    p_VC = z_VC.exp()
    # p first: outside of the kept set it is 0, and another factor would overflow
    z_VC.add_(up.entropy_C).mul_(p_VC).mul_(up.of_entropy_C)
    z_VC.addcmul_(p_VC, up.of_logp_C).neg_()


class _ChunkedStats(torch.autograd.Function):
    @staticmethod
    def forward(  # noqa: PLR0913, PLR0917 - autograd passes them one by one
        ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, of: Distribution, waits: bool
    ) -> tuple[Tensor, Tensor]:
        chunks = chunks_of(len(target_N), len(weight_VD))
        exp = chunk_buffer(hidden_ND, weight_VD, chunks)
        buffer, waiting = exp, []
        logp_N, entropy_N, log_sum_N = (exp.new_empty(len(target_N)) for _ in range(3))
        hidden, weight = factor(hidden_ND), factor(weight_VD)
        for i, c in enumerate(chunks):
            if i == 0 or (waits and i <= WAITING_CHUNKS):
                buffer = chunk_buffer(hidden_ND, weight_VD, chunks[i:])
            z_VC, slope_VC = chunk_logits(hidden, weight, of, c, buffer)
            if waits and i < WAITING_CHUNKS:
                waiting.append((z_VC, slope_VC))
            e_VC = torch.exp(z_VC, out=part_of(exp, weight_VD, c))
            sum_C = e_VC.sum(0)
            log_sum_N[c] = sum_C.log()
            logp_N[c] = z_VC.gather(0, target_N[None, c])[0] - log_sum_N[c]
            entropy_N[c] = log_sum_N[c] - e_VC.mul_(z_VC).sum(0) / sum_C
        ctx.save_for_backward(hidden_ND, weight_VD, target_N, log_sum_N, entropy_N)
        # Memory that has been touched; only the loss lies between here and its use in the backward pass.
        ctx.distribution, ctx.waiting, ctx.buffer = of, waiting, exp if waits else None
        return logp_N, entropy_N

    @staticmethod
    def backward(
        ctx: Any, grad_logp_N: Tensor, grad_entropy_N: Tensor
    ) -> tuple[Tensor, Tensor | None, None, None, None]:
        hidden_ND, weight_VD, target_N, log_sum_N, entropy_N = ctx.saved_tensors
        of: Distribution = ctx.distribution
        waiting, ctx.waiting = ctx.waiting, []
        chunks = chunks_of(len(target_N), len(weight_VD))
        buffer, ctx.buffer = ctx.buffer, None
        if buffer is None:
            buffer = chunk_buffer(hidden_ND, weight_VD, chunks[len(waiting) :])
        grad_hidden_ND = torch.empty_like(hidden_ND)
        # At least float32: sums of bfloat16 would depend on the number of chunks.
        trained = ctx.needs_input_grad[1]  # beside adapters the head is frozen
        grad_weight_VD = torch.empty_like(weight_VD, dtype=wide_type(weight_VD.dtype)) if trained else None
        if grad_weight_VD is not None and not chunks:
            grad_weight_VD.zero_()
        hidden, weight = factor(hidden_ND), factor(weight_VD)
        for i, c in enumerate(chunks):
            z_VC, slope_VC = waiting[i] if i < len(waiting) else chunk_logits(hidden, weight, of, c, buffer)
            of_logp_C, of_entropy_C = (grad_N[c] / of.temperature for grad_N in (grad_logp_N, grad_entropy_N))
            _turn_into_gradients(z_VC, _Upstream(log_sum_N[c], entropy_N[c], of_logp_C, of_entropy_C))
            z_VC.scatter_add_(0, target_N[None, c], of_logp_C[None])
            if slope_VC is not None:
                z_VC *= slope_VC
            rounded_VC = factor(z_VC.to(weight_VD.dtype))
            grad_hidden_ND[c] = (weight.t() @ rounded_VC).t()
            if grad_weight_VD is not None:
                sum_into(grad_weight_VD, rounded_VC, hidden[c], is_first=i == 0)
        if grad_weight_VD is not None:
            grad_weight_VD = grad_weight_VD.to(weight_VD.dtype)
        return grad_hidden_ND, grad_weight_VD, None, None, None


def sum_into(sum_VD: Tensor, left_VC: Tensor, right_CD: Tensor, *, is_first: bool) -> None:
    """The product is added to the sum, or is the sum if it is the first."""
    if sum_VD.dtype == left_VC.dtype:
        sum_VD.addmm_(left_VC, right_CD, beta=0 if is_first else 1)  # 0: what was in the memory is ignored
    elif is_first:
        sum_VD.copy_(left_VC @ right_CD)
    else:
        sum_VD += left_VC @ right_CD
