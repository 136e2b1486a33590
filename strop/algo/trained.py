"""A per-token column as far as it is trained: what other tokens hold never matters."""

import numpy as np
from numpy.typing import NDArray

from strop.errors import NonFinite

# N tokens


def trained_values(
    column_N: NDArray[np.floating], mask_N: NDArray[np.bool_], *, name: str
) -> NDArray[np.float64]:
    """A new float64 column, 0 where the mask is 0: there even NaN, which 0 · NaN would pass on, is nothing.

    Raises NonFinite, with `name` and the first such token, where a trained token has NaN or an infinity.
    """
    values_N = np.where(mask_N, column_N, 0).astype(np.float64)
    is_bad_N = ~np.isfinite(values_N)
    if is_bad_N.any():
        first = int(np.argmax(is_bad_N))
        raise NonFinite(
            f"{name} of {int(is_bad_N.sum())} of {int(mask_N.sum())} trained tokens is not finite "
            f"(the first, token {first} of the step, has {float(values_N[first])})"
        )
    return values_N
