"""The two halves of a fused layer with their gradients: few values kept, and these made into others chunk by
chunk, so that the passes between products stay in the caches.

Kept for the backward pass are the inputs of the norms, what attention saw and the products gate and up. The
stream of hidden states has one reader at every place (`heads` hands it on), so its gradient is one tensor, to
which every part of a layer adds in place.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from strop.nn.fused_layer import (
    Affine,
    Layer,
    Norm,
    Pass,
    chunks,
    gated,
    norm_backward_,
    normed,
    place_heads_,
    project_heads,
    rotate_,
    rstd,
)
from strop.nn.product import EVEN, add_product, columns, outer, product, product_rows

# N tokens, D hidden size, F width of the feed-forward part, H heads, E head size, I = H · E

WORTH = 8
"""Multiples of `EVEN` tokens in a pass that has columns beside its tokens."""


def columns_beside(num_tokens: int) -> int:
    """That make products of `num_tokens` tokens of an even size."""
    return -num_tokens % EVEN if num_tokens >= WORTH * EVEN else 0


def heads(x_DN: Tensor, layer: Layer, shared: Pass) -> tuple[Tensor, ...]:
    """See `fused_inference.heads`."""
    weights = (layer.norm_in.weight, *layer.qkv.parameters, *(norm.weight for norm in layer.head_norms))
    outputs: tuple[Tensor, ...] = _Heads.apply(x_DN, layer, shared, *weights)
    return outputs


def rest(x_DN: Tensor, seen_NI: Tensor, layer: Layer, shared: Pass) -> Tensor:
    """See `fused_inference.rest`."""
    weights = (
        *layer.out.parameters,
        layer.norm_middle.weight,
        *layer.gate_up.parameters,
        *layer.down.parameters,
    )
    out_DN: Tensor = _Rest.apply(x_DN, seen_NI, layer, shared, *weights)
    return out_DN


def last(x_DN: Tensor, norm: Norm) -> Tensor:
    """See `fused_inference.last`."""
    hidden_ND: Tensor = _Last.apply(x_DN, norm, norm.weight)
    return hidden_ND


class _Sums:
    """Gradients of one `Affine`, summed over chunks."""

    def __init__(self, affine: Affine) -> None:
        self._affine = affine
        self._weight: Tensor | None = None
        self._bias: Tensor | None = None

    def add(self, grad_ON: Tensor, x_IN: Tensor, dtype: torch.dtype) -> None:
        self._weight = outer(grad_ON, x_IN, dtype, onto_OI=self._weight)
        if self._affine.bias is not None:
            bias = grad_ON.sum(1)
            self._bias = bias if self._bias is None else self._bias.add_(bias)

    def of_parameters(self) -> tuple[Tensor, ...]:
        """In the order of `Affine.parameters`; rows of one tensor, not copies."""
        assert self._weight is not None, "there is a token"
        weights = self._affine.weight.split(self._weight)
        if self._affine.bias is None:
            return weights
        assert self._bias is not None
        return weights + self._affine.bias.split(self._bias)


# The weights are arguments so that autograd gives them gradients; they are read through `layer`.
# ruff: noqa: ARG004


class _Heads(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_DN: Tensor, layer: Layer, shared: Pass, *weights: Tensor) -> tuple[Tensor, ...]:
        num_heads = layer.num_heads + 2 * layer.num_kv_heads
        heads_NHE = x_DN.new_empty(x_DN.shape[1], num_heads, layer.head_dim)
        rstd_1N = rstd(x_DN, layer.norm_in)
        for at in chunks(len(heads_NHE)):
            h_DN = normed(x_DN[:, at], rstd_1N[:, at], layer.norm_in)
            heads_NHE[at] = project_heads(layer, h_DN, shared.dtype)
        raw = [part.clone() for part, _ in zip(layer.split(heads_NHE), layer.head_norms, strict=False)]
        for at in chunks(len(heads_NHE)):
            place_heads_(layer, heads_NHE[at], shared.of(at))
        ctx.layer, ctx.shared = layer, shared
        ctx.save_for_backward(x_DN, rstd_1N, *raw)
        return x_DN, *layer.split(heads_NHE[: shared.num_tokens].to(shared.attends_in))

    @staticmethod
    def backward(ctx: Any, grad_DN: Tensor, *grads: Tensor) -> tuple[Tensor | None, ...]:
        layer, shared = ctx.layer, ctx.shared
        x_DN, rstd_1N, *raw = ctx.saved_tensors
        matrix = layer.qkv.matrix(shared.dtype)
        sums = _Sums(layer.qkv)
        norm_sum = torch.zeros(len(x_DN), dtype=x_DN.dtype)
        head_sums = [x_DN.new_zeros(layer.head_dim) for _ in raw]
        for at in chunks(x_DN.shape[1]):
            of_heads = torch.cat([grad[at] for grad in grads], 1).to(x_DN.dtype)
            of_heads = F.pad(of_heads, (0, 0, 0, 0, 0, len(shared.cos_N1E[at]) - len(of_heads)))
            if layer.rotates:
                rotate_(of_heads[:, : -layer.num_kv_heads], shared.of(at), back=True)
            for i, part in enumerate(raw):
                head_sums[i] += _head_norm_backward_(layer, i, of_heads, part[at])
            of_heads_IN = of_heads.flatten(1).t()
            h_DN = normed(x_DN[:, at], rstd_1N[:, at], layer.norm_in)
            sums.add(of_heads_IN, h_DN, shared.dtype)
            of_h_DN = product(matrix.t(), of_heads_IN)
            norm_sum += norm_backward_(of_h_DN, x_DN[:, at], rstd_1N[:, at], layer.norm_in)
            grad_DN[:, at] += of_h_DN
        return grad_DN, None, None, norm_sum, *sums.of_parameters(), *head_sums


def _head_norm_backward_(layer: Layer, index: int, grad_NHE: Tensor, raw_NHE: Tensor) -> Tensor:
    grad_ENH, raw_ENH = layer.split(grad_NHE)[index].permute(2, 0, 1), raw_NHE.permute(2, 0, 1)
    norm = layer.head_norms[index]
    return norm_backward_(grad_ENH, raw_ENH, rstd(raw_ENH, norm), norm)


class _Rest(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x_DN: Tensor, seen_NI: Tensor, layer: Layer, shared: Pass, *weights: Tensor
    ) -> Tensor:
        middle_DN, out_DN = torch.empty_like(x_DN), torch.empty_like(x_DN)
        seen_NI = F.pad(seen_NI, (0, 0, 0, x_DN.shape[1] - len(seen_NI)))
        add_product(x_DN, layer.out.matrix(shared.dtype), seen_NI.t(), layer.out.offsets(), out_ON=middle_DN)
        rstd_1N = rstd(middle_DN, layer.norm_middle)
        gate_up, down = layer.gate_up.matrix(shared.dtype), layer.down.matrix(shared.dtype)
        kept = []
        for at in chunks(x_DN.shape[1]):
            h_DN = normed(middle_DN[:, at], rstd_1N[:, at], layer.norm_middle)
            kept.append(product(gate_up, h_DN, layer.gate_up.offsets()))
            add_product(middle_DN[:, at], down, gated(kept[-1]), layer.down.offsets(), out_ON=out_DN[:, at])
        ctx.layer, ctx.shared = layer, shared
        ctx.save_for_backward(middle_DN, rstd_1N, seen_NI, *kept)
        return out_DN

    @staticmethod
    def backward(ctx: Any, grad_DN: Tensor) -> tuple[Tensor | None, ...]:
        layer, shared = ctx.layer, ctx.shared
        middle_DN, rstd_1N, seen_NI, *kept = ctx.saved_tensors
        of_gate_up, of_down = _Sums(layer.gate_up), _Sums(layer.down)
        of_out = _Sums(layer.out)
        norm_sum = torch.zeros(len(grad_DN), dtype=grad_DN.dtype)
        gate_up, down = layer.gate_up.matrix(shared.dtype), layer.down.matrix(shared.dtype)
        for at, gate_up_2FN in zip(chunks(grad_DN.shape[1]), kept, strict=True):
            part_DN, rstd_1C = middle_DN[:, at], rstd_1N[:, at]
            of_gated_FN = product(down.t(), grad_DN[:, at])
            gated_FN, of_gate_up_2FN = _gated_backward(of_gated_FN, gate_up_2FN)
            of_down.add(grad_DN[:, at], gated_FN, shared.dtype)
            of_gate_up.add(of_gate_up_2FN, normed(part_DN, rstd_1C, layer.norm_middle), shared.dtype)
            of_h_DN = product(gate_up.t(), of_gate_up_2FN)
            norm_sum += norm_backward_(of_h_DN, part_DN, rstd_1C, layer.norm_middle)
            grad_DN[:, at] += of_h_DN
        of_out.add(grad_DN, seen_NI.t(), shared.dtype)
        of_seen_NI = product_rows(layer.out.matrix(shared.dtype).t(), grad_DN).to(seen_NI.dtype)
        of_seen_NI = of_seen_NI[: shared.num_tokens]
        weights = (*of_out.of_parameters(), norm_sum, *of_gate_up.of_parameters(), *of_down.of_parameters())
        return grad_DN, of_seen_NI, None, None, *weights


def _gated_backward(grad_FN: Tensor, gate_up_2FN: Tensor) -> tuple[Tensor, Tensor]:
    """`gated` a second time, and the gradient of gate and up; `grad` is used up."""
    gate_FN, up_FN = gate_up_2FN.chunk(2)
    out_2FN = torch.empty_like(gate_up_2FN)
    of_gate_FN, of_up_FN = out_2FN.chunk(2)
    silu_FN = F.silu(gate_FN)
    torch.mul(grad_FN, silu_FN, out=of_up_FN)
    torch.ops.aten.silu_backward.grad_input(grad_FN.mul_(up_FN), gate_FN, grad_input=of_gate_FN)
    return silu_FN.mul_(up_FN), out_2FN


class _Last(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_DN: Tensor, norm: Norm, weight: Tensor) -> Tensor:
        rstd_1N = rstd(x_DN, norm)
        ctx.norm = norm
        ctx.save_for_backward(x_DN, rstd_1N)
        return normed(x_DN, rstd_1N, norm).t().contiguous()

    @staticmethod
    def backward(ctx: Any, grad_ND: Tensor) -> tuple[Tensor | None, ...]:
        x_DN, rstd_1N = ctx.saved_tensors
        grad_DN = columns(grad_ND)
        weight_grad = norm_backward_(grad_DN, x_DN, rstd_1N, ctx.norm)
        return grad_DN, None, weight_grad
