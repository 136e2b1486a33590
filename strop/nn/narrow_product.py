"""The product of a weight and few tokens, in machine code that is made for it when it is first wanted.

A BLAS library copies a weight into the order in which its kernels read it, and then multiplies: with 8 to
64 tokens it spends a third to two thirds of the time on that. Here a weight is read once, where it lies. A
few of its rows at a time are multiplied with all tokens, sums staying in registers, so that memory is read
while sums are computed (the inner kernel of GotoBLAS, Goto and van de Geijn 2008, without the packing of
the weight).
"""

from collections.abc import Callable
from functools import cache
from threading import Lock

import torch
from torch import Tensor

from strop.nn.machine_code import WIDTH, Compiled, is_measured
from strop.nn.narrow_product_code import NUMBERS, PANEL, ROWS_OF_ONE, module

# N tokens, I inputs, O outputs

MANY = 256
"""With so many tokens copying the weight pays off."""


def is_narrow(weight_OI: Tensor, x_IN: Tensor) -> bool:
    """Whether `narrow_product` does it, and is the fastest way: a team of threads splits torch's products."""
    return (
        x_IN.shape[1] < MANY
        and torch.get_num_threads() == 1
        and weight_OI.dtype in (torch.float32, torch.bfloat16)
        and weight_OI.stride(1) == 1
        and weight_OI.shape[1] % WIDTH == 0
        and is_measured()
    )


def narrow_product(weight_OI: Tensor, x_IN: Tensor, out_ON: Tensor, *, adds: bool) -> None:
    """Write weight · x to `out`, or add it. x and `out` are float32, and a row of `out` lies in one piece.
    A column's numbers do not depend on the columns beside it."""
    with _making:
        of_float, of_bfloat16 = _compiled()
    (num_outputs, num_inputs), num_tokens = weight_OI.shape, x_IN.shape[1]
    space = torch.empty((num_tokens + WIDTH + ROWS_OF_ONE) * num_inputs + PANEL * ROWS_OF_ONE)
    (of_bfloat16 if weight_OI.dtype is torch.bfloat16 else of_float)(
        *(tensor.data_ptr() for tensor in (weight_OI, x_IN, out_ON, space)),
        *(num_outputs, num_inputs, num_tokens),
        *(weight_OI.stride(0), *x_IN.stride(), out_ON.stride(0), adds),
    )


_making = Lock()


@cache
def _compiled() -> tuple[Callable[..., None], Callable[..., None]]:
    """For weights of float32 and of bfloat16."""
    made = Compiled(module())
    of_float, of_bfloat16 = (made.function(f"of_{kind}", 4, len(NUMBERS)) for kind in ("float", "bfloat16"))
    return of_float, of_bfloat16
