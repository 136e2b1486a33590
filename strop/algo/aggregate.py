"""From per-token losses to one number: the weight of every token, with denominators of the whole update.

The weights are fixed before anything is split, so that Σ weight · loss and its gradient are equal for every
split into micro-batches and ranks.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Aggregation = Literal["token_mean", "seq_mean_token_mean", "seq_mean_token_sum", "seq_sum_const"]


def token_weights(
    aggregation: Aggregation,
    *,
    mask: NDArray[np.bool_],
    trajectory_of_token: NDArray[np.integer[Any]],
    update_of_token: NDArray[np.integer[Any]],
    constant: int,
) -> NDArray[np.float32]:
    """[N] weights, 0 where the mask is 0, so that an update's loss is Σ weight · loss over its tokens.

    `token_mean`: 1 / trained tokens of the update. The others divide by the update's trajectories:
    `seq_mean_token_mean` also by the trained tokens of the trajectory, all its samples together;
    `seq_sum_const` also by `constant`; `seq_mean_token_sum` by nothing else. A trajectory without a trained
    token is not counted. A trajectory lies in one update.
    """
    trained = mask.astype(np.float64)
    if aggregation == "token_mean":
        denominator = _sum_by(update_of_token, trained)
    else:
        in_trajectory = _sum_by(trajectory_of_token, trained)
        num_trajectories = _sum_by(update_of_token, _first_of_each(trajectory_of_token, mask))
        denominator = {
            "seq_mean_token_mean": num_trajectories * in_trajectory,
            "seq_mean_token_sum": num_trajectories,
            "seq_sum_const": num_trajectories * constant,
        }[aggregation]
    # Where the mask is 1 every denominator is at least 1; the floor only spares untrained tokens a 0 / 0.
    return (trained / np.maximum(denominator, 1)).astype(np.float32)


def _sum_by(key_N: NDArray[np.integer[Any]], value_N: NDArray[np.float64]) -> NDArray[np.float64]:
    """[N] the sum of the values of all tokens that share a token's key."""
    keys, row_N = np.unique(key_N, return_inverse=True)
    sum_K = np.zeros(len(keys), np.float64)
    np.add.at(sum_K, row_N, value_N)
    return sum_K[row_N]


def _first_of_each(key_N: NDArray[np.integer[Any]], mask_N: NDArray[np.bool_]) -> NDArray[np.float64]:
    """[N] 1 on the first trained token of every key, else 0: summed, it counts keys without rounding."""
    trained_rows = np.flatnonzero(mask_N)
    _, first = np.unique(key_N[trained_rows], return_index=True)
    first_N = np.zeros(len(key_N), np.float64)
    first_N[trained_rows[first]] = 1
    return first_N
