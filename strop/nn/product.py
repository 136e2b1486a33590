"""Products of a weight matrix and tokens, in the layout and the type that the machine multiplies fastest.

Tokens are columns here, and each row of a result lies in one piece: with two threads MKL splits weight ·
tokens by rows of the weight, but tokens · weightᵀ by tokens: up to 1.8 times as long where they are 64.

Results are float32 or wider, whatever the weight's type is. A machine without bfloat16 instructions takes
eight times as long for a bfloat16 product; the float32 product of the same rounded numbers is that product.
"""

from functools import cache

import torch
from torch import Tensor

from strop.nn.narrow_product import is_narrow, narrow_product

# N tokens, I inputs, O outputs

FEW = 16
"""Fewer tokens are read faster when each lies in one piece."""
MANY = 128
"""So many tokens make a product as fast in either layout."""
EVEN = 32
"""A product of a multiple of so many tokens takes up to a third less time than its neighbours."""
PLAIN = 4
"""Fewer tokens are a matter of reading the weight, in whatever type it is stored."""


def columns(x_NI: Tensor) -> Tensor:
    """Tokens as columns [I, N], laid out for `product`."""
    return x_NI.t().contiguous()


def product(
    weight_OI: Tensor, x_IN: Tensor, bias_O: Tensor | None = None, *, out_ON: Tensor | None = None
) -> Tensor:
    """[O, N]; written to `out`, if given."""
    if _narrow(weight_OI, x_IN, out_ON):
        out_ON = x_IN.new_empty(len(weight_OI), x_IN.shape[1]) if out_ON is None else out_ON
        narrow_product(weight_OI, _rounded(x_IN, weight_OI.dtype), out_ON, adds=False)
    else:
        out_ON = _by_torch(*_operands(weight_OI, x_IN), out_ON)
    return out_ON if bias_O is None else out_ON.add_(bias_O[:, None])


def product_rows(weight_OI: Tensor, x_IN: Tensor, bias_O: Tensor | None = None) -> Tensor:
    """[N, O], for whoever needs the values of a token side by side."""
    if x_IN.shape[1] < MANY or _narrow(weight_OI, x_IN, None):
        return product(weight_OI, x_IN, bias_O).t().contiguous()
    weight_OI, x_IN = _operands(weight_OI, x_IN)
    out_NO = _wide(torch.mm(x_IN.t(), weight_OI.t()))
    return out_NO if bias_O is None else out_NO.add_(bias_O)


def add_product(
    sum_ON: Tensor, weight_OI: Tensor, x_IN: Tensor, bias_O: Tensor | None = None, *, out_ON: Tensor
) -> Tensor:
    """`sum` + weight · x (+ bias), written to `out`, which may be `sum` itself."""
    if out_ON is sum_ON and _narrow(weight_OI, x_IN, out_ON):
        narrow_product(weight_OI, _rounded(x_IN, weight_OI.dtype), out_ON, adds=True)
    else:
        weight_OI, x_IN = _operands(weight_OI, x_IN)
        if weight_OI.dtype is sum_ON.dtype:
            torch.addmm(sum_ON, weight_OI, x_IN, out=out_ON)
        else:
            torch.add(sum_ON, _multiplied(weight_OI, x_IN), out=out_ON)
    return out_ON if bias_O is None else out_ON.add_(bias_O[:, None])


def outer(grad_ON: Tensor, x_IN: Tensor, dtype: torch.dtype, *, onto_OI: Tensor | None) -> Tensor:
    """grad · xᵀ, computed in `dtype`: the gradient of a product's weight. It is added to `onto`, if given."""
    wide = grad_ON.dtype
    if dtype is not wide:
        grad_ON, x_IN = grad_ON.to(dtype), x_IN.to(dtype)
        if not multiplies_bfloat16():
            grad_ON, x_IN = _wide(grad_ON), _wide(x_IN)
    if onto_OI is not None and grad_ON.dtype is wide:
        return onto_OI.addmm_(grad_ON, x_IN.t())
    product_OI = torch.mm(grad_ON, x_IN.t()).to(wide)
    return product_OI if onto_OI is None else onto_OI.add_(product_OI)


def wide_type(dtype: torch.dtype) -> torch.dtype:
    """Of what lies between products."""
    return torch.promote_types(dtype, torch.float32)


def factor(x: Tensor) -> Tensor:
    """The same numbers in the type in which the machine multiplies them fastest."""
    return x if multiplies_bfloat16() else _wide(x)


@cache
def multiplies_bfloat16() -> bool:
    """Whether the machine has instructions for it."""
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def _narrow(weight_OI: Tensor, x_IN: Tensor, out_ON: Tensor | None) -> bool:
    if x_IN.dtype is not torch.float32 or not is_narrow(weight_OI, x_IN):
        return False
    return out_ON is None or (out_ON.dtype is torch.float32 and out_ON.stride(1) == 1)


def _rounded(x: Tensor, dtype: torch.dtype) -> Tensor:
    """To numbers of `dtype`, in the type that they have."""
    return x.to(dtype).to(x.dtype)


def _by_torch(weight_OI: Tensor, x_IN: Tensor, out_ON: Tensor | None) -> Tensor:
    if out_ON is None:
        return _wide(_multiplied(weight_OI, x_IN))
    if weight_OI.dtype is out_ON.dtype:
        return torch.mm(weight_OI, x_IN, out=out_ON)
    return out_ON.copy_(_multiplied(weight_OI, x_IN))


def _operands(weight_OI: Tensor, x_IN: Tensor) -> tuple[Tensor, Tensor]:
    num_tokens, x_IN = x_IN.shape[1], x_IN.to(weight_OI.dtype)
    if num_tokens >= PLAIN and not multiplies_bfloat16():
        weight_OI, x_IN = _wide(weight_OI), _wide(x_IN)
    return weight_OI, x_IN.t().contiguous().t() if num_tokens < FEW else x_IN


def _multiplied(weight_OI: Tensor, x_IN: Tensor) -> Tensor:
    if weight_OI.dtype is torch.bfloat16 and x_IN.shape[1] < PLAIN:  # as columns they take a slow loop
        return torch.mm(x_IN.t(), weight_OI.t()).t()
    return torch.mm(weight_OI, x_IN)


def _wide(x: Tensor) -> Tensor:
    return x.to(wide_type(x.dtype))
