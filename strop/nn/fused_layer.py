"""The parts of a Llama-like layer: its weights, and the maths between its products, in place where it may be.

Tokens are columns between the products, rows where heads are told apart.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strop.nn.attention import Rule
from strop.nn.joined import Joined
from strop.nn.product import product_rows

# N tokens, D hidden size, F width of the feed-forward part, H heads (of q, k and v together), E head size

CHUNK = 1024
"""Tokens that pass from product to product at once: fewer would make many small steps, more would
leave the caches."""


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
    head_norms: tuple[Norm, ...]
    """Of each query and of each key, or none."""
    out: Affine
    norm_middle: Norm
    gate_up: Affine
    down: Affine

    def split(self, heads_NHE: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values."""
        return heads_NHE.split((self.num_heads, self.num_kv_heads, self.num_kv_heads), 1)


@dataclass(frozen=True, slots=True)
class Pass:
    """What all layers of one forward pass share."""

    num_tokens: int
    """That attend. There may be more columns, which make products of an even size: their gradients are 0."""
    cos_N1E: Tensor
    sin_N1E: Tensor
    """Of each token's angles; E: of half a head."""
    dtype: torch.dtype
    """In which products are computed."""
    attends_in: torch.dtype
    """Of the queries, keys and values that attention is given."""

    def of(self, tokens: slice) -> "Pass":
        return replace(self, cos_N1E=self.cos_N1E[tokens], sin_N1E=self.sin_N1E[tokens])


def chunks(num_tokens: int) -> list[slice]:
    return [slice(i, min(i + CHUNK, num_tokens)) for i in range(0, num_tokens, CHUNK)]


def rstd(x: Tensor, norm: Norm) -> Tensor:
    """1 / √(mean x² + eps) over the first dimension, which stays, as 1."""
    return x.square().sum(0, keepdim=True).mul_(1 / len(x)).add_(norm.eps).rsqrt_()


def normed(x: Tensor, rstd: Tensor, norm: Norm) -> Tensor:
    return torch.mul(x, rstd).mul_(_along_first(norm.weight, x))


def norm_backward_(grad: Tensor, x: Tensor, rstd: Tensor, norm: Norm) -> Tensor:
    """Turn the gradient of `normed` into that of `x`, in place; returns that of the weight."""
    unit = x * rstd
    products = grad * unit
    weight_grad = products.sum(tuple(range(1, x.ndim)))
    weight = _along_first(norm.weight, x)
    mean = products.mul_(weight).mean(0, keepdim=True)
    grad.mul_(weight).addcmul_(unit, mean, value=-1).mul_(rstd)
    return weight_grad


def rotate_(heads_NHE: Tensor, shared: Pass, *, back: bool = False) -> None:
    """Turn the two halves of every head, in place; `back` undoes it, which is also its gradient."""
    first, second = heads_NHE.chunk(2, -1)
    sign = -1 if back else 1
    before = first.clone()
    first.mul_(shared.cos_N1E).addcmul_(second, shared.sin_N1E, value=-sign)
    second.mul_(shared.cos_N1E).addcmul_(before, shared.sin_N1E, value=sign)


def project_heads(layer: Layer, h_DN: Tensor, dtype: torch.dtype) -> Tensor:
    """Queries, keys and values of normed tokens [N, H, E], as the products give them."""
    rows_NI = product_rows(layer.qkv.matrix(dtype), h_DN, layer.qkv.offsets())
    return rows_NI.view(len(rows_NI), -1, layer.head_dim)


def place_heads_(layer: Layer, heads_NHE: Tensor, shared: Pass) -> None:
    """Norms and positions of queries and keys, in place."""
    for part_NHE, norm in zip(layer.split(heads_NHE), layer.head_norms, strict=False):  # values have none
        part_ENH = part_NHE.permute(2, 0, 1)
        part_ENH.mul_(rstd(part_ENH, norm)).mul_(_along_first(norm.weight, part_ENH))
    if layer.rotates:
        rotate_(heads_NHE[:, : -layer.num_kv_heads], shared)


def _along_first(weight: Tensor, x: Tensor) -> Tensor:
    return weight.view(-1, *[1] * (x.ndim - 1))


def gated(gate_up_2FN: Tensor, *, in_place: bool = False) -> Tensor:
    """silu(gate) · up [F, N], where the gate is or elsewhere."""
    gate_FN, up_FN = gate_up_2FN.chunk(2)
    return F.silu(gate_FN, inplace=in_place).mul_(up_FN)
