"""Hand-worked numbers of aggregation and group advantages, each an equation with its value, to 1e-6."""

import numpy as np
import pytest

from strop.algo.advantages import group_advantages
from strop.algo.aggregate import token_weights


def aggregate(aggregation, values, *, trajectories=None, constant=8):
    """Σ weight · value over one update; `values` holds a list per sample."""
    lengths = [len(row) for row in values]
    owner = np.repeat(np.arange(len(values)) if trajectories is None else trajectories, lengths)
    weights = token_weights(
        aggregation,
        mask=np.ones(sum(lengths), bool),
        trajectory_of_token=owner,
        update_of_token=np.zeros(sum(lengths), np.int64),
        constant=constant,
    )
    return float(weights.astype(np.float64) @ np.concatenate(values))


UNEVEN = [[1, 3], [2, 2, 2, 6]]
SINGLES = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
SIBLINGS = [*SINGLES, [10, 11, 12]]
DECADES = [[x * scale for x in range(1, 9)] for scale in (1, 10, 100, 1000)]


@pytest.mark.parametrize(
    ("aggregation", "value"),
    [
        ("token_mean", 16 / 6),
        ("seq_mean_token_mean", 2.5),
        ("seq_mean_token_sum", 8.0),
        ("seq_sum_const", 1.0),
    ],
)
def test_aggregation_of_two_uneven_sequences(aggregation, value):
    assert aggregate(aggregation, UNEVEN) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(
    ("aggregation", "values", "trajectories", "value"),
    [
        ("seq_mean_token_mean", SINGLES, [0, 1, 2], 15.0 / 3),
        ("seq_mean_token_mean", SIBLINGS, [0, 0, 0, 1], 16.0 / 2),
        ("token_mean", SIBLINGS, [0, 0, 0, 1], 6.5),
        ("seq_mean_token_sum", SIBLINGS, [0, 0, 0, 1], 78 / 2),
        ("seq_mean_token_mean", DECADES, [0, 1, 2, 3], 1249.875),
    ],
)
def test_aggregation_is_per_trajectory(aggregation, values, trajectories, value):
    assert aggregate(aggregation, values, trajectories=trajectories) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(
    ("rewards", "normalize_std", "value"),
    [
        ([1, 0, 0, 1, 1, 1], True, [0.645496, -1.290992, -1.290992, 0.645496, 0.645496, 0.645496]),
        ([1, 0, 0, 1, 1, 1], False, [1 / 3, -2 / 3, -2 / 3, 1 / 3, 1 / 3, 1 / 3]),
        ([0.5, 0.5, 0.5], True, [0, 0, 0]),
        ([1, 0], True, [0.7071058, -0.7071058]),
    ],
)
def test_group_advantage(rewards, normalize_std, value):
    n = len(rewards)
    advantages = group_advantages(
        np.array(rewards, np.float64),
        groups=np.zeros(n, np.int64),
        trajectories=np.arange(n),
        normalize_std=normalize_std,
    )
    assert advantages == pytest.approx(value, abs=2e-6)
