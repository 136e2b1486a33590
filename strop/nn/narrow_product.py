"""The product of a weight and few tokens, in machine code that is made for it when it is first wanted.

A BLAS library copies a weight into the order in which its kernels read it, and then multiplies: with 8 to
64 tokens it spends a third to two thirds of the time on that. Here a weight is read once, where it lies. A
few of its rows at a time are multiplied with all tokens, sums staying in registers, so that memory is read
while sums are computed (the inner kernel of GotoBLAS, Goto and van de Geijn 2008, without the packing of
the weight).
"""

import ctypes
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

import torch
from torch import Tensor

# N tokens, I inputs, O outputs

MANY = 256
"""With so many tokens copying the weight pays off."""
WIDTH, ROWS_OF_ONE = 8, 12
"""Inputs are a multiple of it."""


def is_narrow(weight_OI: Tensor, x_IN: Tensor) -> bool:
    """Whether `narrow_product` does it, and is the fastest way: a team of threads splits torch's products,
    and measured was AVX2 only."""
    return (
        x_IN.shape[1] < MANY
        and torch.get_num_threads() == 1
        and weight_OI.dtype in (torch.float32, torch.bfloat16)
        and weight_OI.stride(1) == 1
        and weight_OI.shape[1] % WIDTH == 0
        and torch.backends.cpu.get_cpu_capability() == "AVX2"
    )


def narrow_product(weight_OI: Tensor, x_IN: Tensor, out_ON: Tensor, *, adds: bool) -> None:
    """Write weight · x to `out`, or add it. x and `out` are float32, and a row of `out` lies in one piece.
    A column's numbers do not depend on the columns beside it."""
    with _making:
        _, of_float, of_bfloat16 = _compiled()
    (num_outputs, num_inputs), num_tokens = weight_OI.shape, x_IN.shape[1]
    space = torch.empty((num_tokens + WIDTH + ROWS_OF_ONE) * num_inputs + 2 * WIDTH * ROWS_OF_ONE)
    (of_bfloat16 if weight_OI.dtype is torch.bfloat16 else of_float)(
        *(tensor.data_ptr() for tensor in (weight_OI, x_IN, out_ON, space)),
        *(num_outputs, num_inputs, num_tokens),
        *(weight_OI.stride(0), *x_IN.stride(), out_ON.stride(0), adds),
    )


_making = Lock()


@cache
def _compiled() -> tuple[Any, Callable[..., None], Callable[..., None]]:
    """What owns the code, and the code for weights of float32 and of bfloat16."""
    from llvmlite import binding  # 0.2 s for those who decode

    from strop.nn.narrow_code import NUMBERS, module

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=3
    )
    parsed = binding.parse_assembly(str(module()))
    passes = binding.create_new_module_pass_manager()
    passes.add_sroa_pass()  # variables become registers; more passes do not make it faster
    passes.run(parsed, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options()))
    owner = binding.create_mcjit_compiler(parsed, machine)
    owner.finalize_object()
    form = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * len(NUMBERS))
    of_float, of_bfloat16 = (form(owner.get_function_address(f"of_{kind}")) for kind in ("float", "bfloat16"))
    return owner, of_float, of_bfloat16
