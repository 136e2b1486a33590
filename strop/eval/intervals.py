"""How sure a mean is: an interval that holds the true mean in 95 of 100 evaluations.

`wilson` is for a share of prompts that pass, each wholly or not at all, as with one sample a prompt: it is
right near 0 and 1 and for few prompts, where the normal interval is not. `normal` is for all else, over
prompts: they are the independent draws, the samples of one are not (a clustered standard error).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Z = 1.959963984540054
"""Two-sided 95 % of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Interval:
    """95 %, both ends included."""

    low: float
    high: float
    method: Literal["wilson", "normal"]


def interval_of(mean: float, prompts: Sequence[Sequence[float]]) -> Interval | None:
    """Of the mean over all trajectories, from the rewards of each prompt; None when so few cannot tell."""
    means = [float(np.mean(rewards)) for rewards in prompts if rewards]
    if means and set(means) <= {0.0, 1.0}:
        return wilson(passed=int(sum(means)), n=len(means))
    error = standard_error(prompts)
    return None if math.isnan(error) else Interval(mean - Z * error, mean + Z * error, "normal")


def wilson(*, passed: int, n: int) -> Interval:
    """Wilson's score interval of a share (1927), without continuity correction."""
    share, z2 = passed / n, Z * Z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    # At the ends the two terms are equal, up to rounding.
    low = 0.0 if passed == 0 else centre - half
    return Interval(low, 1.0 if passed == n else centre + half, "wilson")


def standard_error(prompts: Sequence[Sequence[float]]) -> float:
    """Of the mean over prompts: the deviation of their means over the root of their number; NaN for one."""
    means = np.array([np.mean(rewards) for rewards in prompts if rewards])
    return float(means.std(ddof=1) / math.sqrt(len(means))) if len(means) > 1 else math.nan
