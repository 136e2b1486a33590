"""Hand-worked sums of losses, their splits and gradients: a row's id begins with its formula's section."""

import numpy as np
import pytest
import torch

from strop.algo.aggregate import token_weights

UNEVEN = [[1, 3], [2, 2, 2, 6]]
SINGLES = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
SIBLINGS = [*SINGLES, [10, 11, 12]]
DECADES = [[x * scale for x in range(1, 9)] for scale in (1, 10, 100, 1000)]
OF_ROLLOUTS = [0, 0, 0, 1]


def weights_of(aggregation, values, trajectories):
    lengths = [len(row) for row in values]
    return token_weights(
        aggregation,
        mask=np.ones(sum(lengths), bool),
        trajectory_of_token=np.repeat(trajectories, lengths),
        update_of_token=np.zeros(sum(lengths), np.int64),
        constant=8,
    ).astype(np.float64)


@pytest.mark.parametrize(
    ("aggregation", "values", "trajectories", "times", "value"),
    [
        pytest.param("token_mean", UNEVEN, [0, 1], 1, 2.6666667, id="1.3-token_mean"),
        pytest.param("seq_mean_token_mean", UNEVEN, [0, 1], 1, 2.5, id="1.3-seq_mean_token_mean"),
        pytest.param("seq_mean_token_sum", UNEVEN, [0, 1], 1, 8.0, id="1.3-seq_mean_token_sum"),
        pytest.param("seq_sum_const", UNEVEN, [0, 1], 1, 1.0, id="1.3-seq_sum_const"),
        pytest.param("seq_mean_token_mean", SINGLES, [0, 1, 2], 3, 15.0, id="1.3-sum-of-means"),
        pytest.param("seq_mean_token_mean", SIBLINGS, OF_ROLLOUTS, 2, 16.0, id="1.3-siblings"),
        pytest.param("seq_mean_token_mean", SIBLINGS, OF_ROLLOUTS, 1, 8.0, id="1.3-metric-of-rollouts"),
        pytest.param("token_mean", SIBLINGS, OF_ROLLOUTS, 1, 6.5, id="1.3-metric-of-tokens"),
        pytest.param("seq_mean_token_sum", SIBLINGS, OF_ROLLOUTS, 1, 39.0, id="1.3-sum-of-siblings"),
        pytest.param("seq_mean_token_mean", DECADES, [0, 1, 2, 3], 1, 1249.875, id="1.3-decades"),
    ],
)
@pytest.mark.parametrize("split", [1, 2, 5, 100])
def test_weighted_sum_however_it_is_split(aggregation, values, trajectories, times, value, split):
    """`times`: the specification's sum where strop takes the mean over that many trajectories."""
    terms = weights_of(aggregation, values, trajectories) * np.concatenate(values)
    parts = [terms[at : at + split].sum() for at in range(0, len(terms), split)]
    assert times * sum(parts) == pytest.approx(value, rel=1e-6)


def test_denominators_of_a_micro_batch_would_give_something_else():
    halves = [(SIBLINGS[:2], [0, 0]), (SIBLINGS[2:], [0, 1])]
    wrong = sum(
        len(set(owner)) * (weights_of("seq_mean_token_mean", part, owner) @ np.concatenate(part))
        for part, owner in halves
    )
    assert abs(wrong - 16.0) > 1


@pytest.mark.parametrize(
    ("values", "gradient"), [pytest.param(DECADES, 1249.875, id="1.3-gradient-of-a-linear-model")]
)
@pytest.mark.parametrize(("ranks", "contexts"), [(1, 1), (2, 1), (1, 2), (2, 2), (1, 4), (4, 1)])
def test_gradient_of_one_weight_is_the_same_for_every_layout(values, gradient, ranks, contexts):
    weight = torch.tensor(weights_of("seq_mean_token_mean", values, np.arange(4)).reshape(4, 8))
    x, w = torch.tensor(values, dtype=torch.float64), torch.ones((), dtype=torch.float64, requires_grad=True)
    for rows in torch.arange(4).chunk(ranks):
        for columns in torch.arange(8).chunk(contexts):
            (weight[rows][:, columns] * (w * x[rows][:, columns])).sum().backward()
    assert w.grad.item() == pytest.approx(gradient, rel=1e-6)
