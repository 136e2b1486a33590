"""One number from what the steps of a response are worth."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

# S steps

StepAggregate = Literal["min", "prod", "last", "sum"]


def aggregate_steps(score_S: NDArray[np.floating[Any]], *, kind: StepAggregate) -> float:
    """What a response is worth whose steps score so; at least one step.

    `min` and `prod` pay for no added step whose score is at most 1; `last` pays for the end alone; `sum` pays
    for every step, so a policy learns to add empty ones.
    """
    match kind:
        case "min":
            return float(score_S.min())
        case "prod":
            return float(score_S.prod())
        case "last":
            return float(score_S[-1])
        case "sum":
            return float(score_S.sum())
