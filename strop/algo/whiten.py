"""Advantages with mean 0 and variance 1 over the trained tokens of the whole step."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from strop.algo.trained import trained_values
from strop.sample import all_equal

# N tokens

Variance = Literal["bessel", "population"]
"""`bessel`: Σ(x − mean)² / (n − 1), + 1e-8 under the root (verl, slime). `population`: over n, at least 1e-8
(OpenRLHF)."""

_EPSILON = 1e-8


@dataclass(frozen=True, slots=True)
class Whitened:
    """`values_N` is new, float64, and 0 where the mask is 0."""

    values_N: NDArray[np.float64]
    mean: float
    """Before; 0 when no token is trained."""
    variance: float
    """Before, by the convention that was asked for; 0 for fewer than two tokens or equal ones."""

    @property
    def is_scaled(self) -> bool:
        """Whether there was a spread to divide by: at least two trained tokens that differ."""
        return self.variance > 0


def whiten(
    values_N: NDArray[np.floating],
    mask_N: NDArray[np.bool_],
    *,
    variance: Variance,
    shift_mean: bool = True,
) -> Whitened:
    """(x − mean) / deviation on trained tokens; without `shift_mean` the mean is added again.

    In two passes: E[x²] − E[x]² of equal values comes out negative in float32. Values that are equal to
    float32's precision, a single one among them, are centred only, which is exactly 0 with `shift_mean` and
    their mean without; `is_scaled` tells. Raises NonFinite for a trained token that is not a number.
    """
    trained_N = trained_values(values_N, mask_N, name="advantage")
    known = trained_N[mask_N]
    mean = float(known.mean()) if len(known) else 0.0
    is_flat = all_equal(known)
    spread = 0.0 if is_flat else float(known.var(ddof=1 if variance == "bessel" else 0))
    root = np.sqrt(spread + _EPSILON if variance == "bessel" else max(spread, _EPSILON))
    scaled = np.zeros_like(known) if is_flat else (known - mean) / root
    trained_N[mask_N] = scaled if shift_mean else scaled + mean
    return Whitened(values_N=trained_N, mean=mean, variance=spread)
