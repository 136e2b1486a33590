"""The parts of a Llama-like layer: its weights, and the maths between its products, in place where it may be.

Tokens are columns between the products, rows where heads are told apart.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strop.nn.attention import Rule
from strop.nn.joined import Joined
from strop.nn.product import product_rows

# N tokens, D hidden size, F width of the feed-forward part, H heads (of q, k and v together), E head size

CHUNK = 256
"""Tokens that pass from product to product at once: enough for full speed, little enough for the caches."""


@dataclass(frozen=True, slots=True)
class Norm:
    """x / √(mean x² + eps) · weight"""

    weight: nn.Parameter
    eps: float


@dataclass(frozen=True, slots=True)
class Affine:
    """One product for one or more matrices of the model."""

    weight: Joined
    bias: Joined | None

    def matrix(self, dtype: torch.dtype) -> Tensor:
        return self.weight.whole().to(dtype)

    def offsets(self) -> Tensor | None:
        return None if self.bias is None else self.bias.whole()

    @property
    def parameters(self) -> tuple[nn.Parameter, ...]:
        return self.weight.parts + (() if self.bias is None else self.bias.parts)


@dataclass(frozen=True, slots=True)
class Layer:
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rule: Rule
    rotates: bool
    """False: the layer does not know positions."""
    norm_in: Norm
    qkv: Affine
    head_norms: tuple[Norm, Norm] | None
    """Of each query and each key."""
    out: Affine
    norm_middle: Norm
    gate_up: Affine
    down: Affine


@dataclass(frozen=True, slots=True)
class Pass:
    """What all layers of one forward pass share."""

    cos_N1E: Tensor
    sin_N1E: Tensor
    """Of each token's angles; E: of half a head."""
    dtype: torch.dtype
    """In which products are computed."""
    attends_in: torch.dtype
    """Of the queries, keys and values that attention is given."""


def chunks(num_tokens: int) -> list[slice]:
    return [slice(i, min(i + CHUNK, num_tokens)) for i in range(0, num_tokens, CHUNK)]


def rstd(x: Tensor, eps: float, *, dim: int) -> Tensor:
    """1 / √(mean x² + eps)"""
    return x.square().mean(dim, keepdim=True).add_(eps).rsqrt_()


def normed(x_DN: Tensor, rstd_1N: Tensor, norm: Norm) -> Tensor:
    return torch.mul(x_DN, rstd_1N).mul_(norm.weight.detach()[:, None])


def rotate_(heads_NHE: Tensor, shared: Pass, *, back: bool = False) -> None:
    """Turn the two halves of every head, in place; `back` undoes it, which is also its gradient."""
    first, second = heads_NHE.chunk(2, -1)
    sign = -1 if back else 1
    before = first.clone()
    first.mul_(shared.cos_N1E).addcmul_(second, shared.sin_N1E, value=-sign)
    second.mul_(shared.cos_N1E).addcmul_(before, shared.sin_N1E, value=sign)


def heads_of(layer: Layer, h_DN: Tensor, shared: Pass) -> Tensor:
    """Queries, keys and values of normed tokens [N, H, E], ready for attention."""
    heads_NHE = product_rows(layer.qkv.matrix(shared.dtype), h_DN, layer.qkv.offsets()).view(
        h_DN.shape[1], -1, layer.head_dim
    )
    looking = layer.num_heads + layer.num_kv_heads
    if layer.head_norms is not None:
        parts = heads_NHE.split((layer.num_heads, layer.num_kv_heads, layer.num_kv_heads), 1)
        for part_NHE, norm in zip(parts, layer.head_norms, strict=False):  # values have none
            part_NHE.mul_(rstd(part_NHE, norm.eps, dim=-1)).mul_(norm.weight.detach())
    if layer.rotates:
        rotate_(heads_NHE[:, :looking], shared)
    return heads_NHE.to(shared.attends_in)


def gated(gate_up_2FN: Tensor) -> Tensor:
    """silu(gate) · up [F, N], which takes the place of the gate."""
    gate_FN, up_FN = gate_up_2FN.chunk(2)
    return F.silu(gate_FN, inplace=True).mul_(up_FN)
