"""The two halves of a fused layer without gradients, in place."""

from torch import Tensor

from strop.nn.fused_layer import (
    Affine,
    Layer,
    Norm,
    Pass,
    chunks,
    gated,
    normed,
    place_heads_,
    project_heads,
    rstd,
)
from strop.nn.product import add_product, product

# N tokens, D hidden size, F width of the feed-forward part, H heads, I = H · E


def columns_beside(num_tokens: int) -> int:  # noqa: ARG001 - see `fused_training.columns_beside`
    return 0


def heads(x_DN: Tensor, layer: Layer, shared: Pass) -> tuple[Tensor, ...]:
    """`x` itself; queries, keys and values [N, H, E]."""
    heads_NHE = project_heads(layer, normed(x_DN, rstd(x_DN, layer.norm_in), layer.norm_in), shared.dtype)
    place_heads_(layer, heads_NHE, shared)
    return x_DN, *layer.split(heads_NHE.to(shared.attends_in))


def rest(x_DN: Tensor, seen_NI: Tensor, layer: Layer, shared: Pass) -> Tensor:
    """`x` after what attention has seen and the feed-forward part are added."""
    _add_(x_DN, layer.out, seen_NI.t(), shared)
    for at in chunks(x_DN.shape[1]):
        part_DN = x_DN[:, at]
        h_DN = normed(part_DN, rstd(part_DN, layer.norm_middle), layer.norm_middle)
        gate_up_2FN = product(layer.gate_up.matrix(shared.dtype), h_DN, layer.gate_up.offsets())
        _add_(part_DN, layer.down, gated(gate_up_2FN, in_place=True), shared)
    return x_DN


def last(x_DN: Tensor, norm: Norm) -> Tensor:
    """Hidden states [N, D]."""
    return normed(x_DN, rstd(x_DN, norm), norm).t().contiguous()


def _add_(x_DN: Tensor, affine: Affine, y_IN: Tensor, shared: Pass) -> None:
    add_product(x_DN, affine.matrix(shared.dtype), y_IN, affine.offsets(), out_ON=x_DN)
