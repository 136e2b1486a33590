"""The product of a weight and few tokens, in machine code that is made for it when it is first wanted.

A BLAS library copies a weight into the order in which its kernels read it, and then multiplies: with 8 to
64 tokens it spends a third to two thirds of the time on that. Here a weight is read once, where it lies. A
few of its rows at a time are multiplied with all tokens, sums staying in registers, so that memory is read
while sums are computed (the inner kernel of GotoBLAS, Goto and van de Geijn 2008, without the packing of
the weight).
"""

from collections.abc import Callable

import torch
from torch import Tensor

from strop.nn.own_code import WIDTH, is_measured, made_once

# N tokens, I inputs, O outputs

MANY = 256
"""With so many tokens copying the weight pays off."""
LEAST = 2**16
"""Numbers of a weight, with fewer of which making the code takes longer than it saves."""

ROWS, ROWS_OF_ONE = 6, 12
"""Of the weight that are multiplied together with two registers of tokens, and with one: these sums, and what
they are made of, fill the sixteen registers of AVX2."""
PANEL = 2 * WIDTH
"""Tokens that are copied to lie in one piece"""


def is_narrow(weight_OI: Tensor, x_IN: Tensor) -> bool:
    """Whether `narrow_product` does it, and is the fastest way: a team of threads splits torch's products."""
    return (
        1 < x_IN.shape[1] < MANY  # torch reads a weight for one token faster
        and weight_OI.numel() >= LEAST
        and x_IN.is_cpu
        and torch.get_num_threads() == 1
        and weight_OI.dtype in (torch.float32, torch.bfloat16)
        and weight_OI.stride(1) == 1
        and weight_OI.shape[1] % WIDTH == 0
        and is_measured()
    )


def narrow_product(weight_OI: Tensor, x_IN: Tensor, out_ON: Tensor, *, adds: bool) -> None:
    """Write weight · x to `out`, or add it. x and `out` are float32, and a row of `out` lies in one piece.
    A column's numbers do not depend on the columns beside it."""
    of_float, of_bfloat16 = _compiled()
    (num_outputs, num_inputs), num_tokens = weight_OI.shape, x_IN.shape[1]
    assert (len(x_IN), *out_ON.shape) == (num_inputs, num_outputs, num_tokens), "the code looks at no shape"
    size = (num_tokens + WIDTH + ROWS_OF_ONE) * num_inputs + PANEL * ROWS_OF_ONE
    space = torch.empty(size, dtype=torch.float32)  # whatever somebody has made the default
    (of_bfloat16 if weight_OI.dtype is torch.bfloat16 else of_float)(
        *(tensor.data_ptr() for tensor in (weight_OI, x_IN, out_ON, space)),
        *(num_outputs, num_inputs, num_tokens),
        *(weight_OI.stride(0), *x_IN.stride(), out_ON.stride(0), adds),
    )


@made_once
def _compiled() -> tuple[Callable[..., None], Callable[..., None]]:
    """For weights of float32 and of bfloat16."""
    from strop.nn.machine_code import Compiled
    from strop.nn.narrow_product_code import NUMBERS, module

    made = Compiled(module())
    of_float, of_bfloat16 = (made.function(f"of_{kind}", 4, len(NUMBERS)) for kind in ("float", "bfloat16"))
    return of_float, of_bfloat16
