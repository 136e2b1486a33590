"""Where strop's own machine code is used, and how it is made: once, when it is first wanted.

Inner loops that no library does as fast are written for LLVM (`machine_code`). Making them takes a tenth of a
second for each of `narrow_product` and `row_attention`; very small models go without.
"""

from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import ParamSpec, TypeVar

import torch

WIDTH = 8
"""Float32 numbers of a register"""

P = ParamSpec("P")
T = TypeVar("T")


def is_measured() -> bool:
    """Whether own code was measured on machines like this one, and found to be the fastest."""
    return torch.backends.cpu.get_cpu_capability() == "AVX2"


def made_once(make: Callable[P, T]) -> Callable[P, T]:
    """`make`, whose result is kept; threads that want it at the same time wait for the first."""
    kept, lock = cache(make), Lock()

    def made(*args: P.args, **kwargs: P.kwargs) -> T:
        with lock:
            return kept(*args, **kwargs)  # type: ignore[arg-type]  # who asks gives what can be a key

    return made
