"""Hand-worked numbers: each row is an equation with its value, to 1e-6."""

import numpy as np
import pytest
import torch

from strop.algo.advantages import group_advantages
from strop.algo.aggregate import token_weights
from strop.algo.kl import estimate_kl
from strop.algo.losses import clipped_surrogate


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


KL_TABLE = [
    # kind, logp − ref, value, gradient
    ("k1", 0.5, 0.5, 1.0),
    ("k2", 0.5, 0.125, 0.5),
    ("k3", 0.5, 0.10653066, 0.39346934),
    ("low_var_kl", 0.5, 0.10653066, 0.39346934),
    ("k3", -3.0, 16.08553692, -19.08553692),
    ("low_var_kl", -3.0, 10.0, 0.0),
    ("k1", 0.0, 0.0, 1.0),
    ("k2", 0.0, 0.0, 0.0),
    ("k3", 0.0, 0.0, 0.0),
]


@pytest.mark.parametrize(("kind", "log_ratio", "value", "gradient"), KL_TABLE)
def test_kl_estimate_and_its_gradient(kind, log_ratio, value, gradient):
    logp = torch.tensor([-1.0], dtype=torch.float64, requires_grad=True)
    kl = estimate_kl(logp, logp.detach() - log_ratio, kind=kind)
    kl.sum().backward()
    assert (kl.item(), logp.grad.item()) == pytest.approx((value, gradient), abs=1e-6)


SURROGATE_TABLE = [
    # ratio, advantage, loss, gradient, dual-clipped loss, its gradient
    (1.5, 1, -1.28, 0, -1.28, 0),
    (1.5, -1, 1.5, 1.5, 1.5, 1.5),
    (0.5, 1, -0.5, -0.5, -0.5, -0.5),
    (0.5, -1, 0.8, 0, 0.8, 0),
    (5.0, -1, 5.0, 5.0, 3.0, 0),
    (1.0, 1, -1.0, -1.0, -1.0, -1.0),
    (1.0, -1, 1.0, 1.0, 1.0, 1.0),
    (1.1, 2, -2.2, -2.2, -2.2, -2.2),
    (1.0, 0, 0, 0, 0, 0),
]


@pytest.mark.parametrize("dual", [False, True])
@pytest.mark.parametrize("row", SURROGATE_TABLE, ids=lambda row: f"r={row[0]},A={row[1]}")
def test_clipped_surrogate_and_its_gradient(row, dual):
    ratio, advantage, *expected = row
    logp = torch.tensor([ratio], dtype=torch.float64).log().requires_grad_()
    loss = clipped_surrogate(
        logp,
        torch.zeros(1, dtype=torch.float64),
        advantage_N=torch.tensor([advantage], dtype=torch.float64),
        clip_low=0.2,
        clip_high=0.28,
        dual_clip=3.0 if dual else None,
    ).loss_N
    loss.sum().backward()
    assert (loss.item(), logp.grad.item()) == pytest.approx(expected[2:] if dual else expected[:2], abs=1e-6)


def test_dual_clip_of_three_ratios():
    loss = clipped_surrogate(
        torch.tensor([2.0, 2.0, 0.5]).log(),
        torch.zeros(3),
        advantage_N=torch.tensor([2.0, -2.0, 2.0]),
        clip_low=0.2,
        clip_high=0.2,
        dual_clip=1.5,
    ).loss_N
    assert loss.tolist() == pytest.approx([-2.4, 3.0, -1.0], abs=1e-6)


def test_k1_of_three_tokens():
    kl = estimate_kl(torch.tensor([0.5, 0.7, 0.9]), torch.tensor([0.4, 0.5, 0.6]), kind="k1")
    assert kl.tolist() == pytest.approx([0.1, 0.2, 0.3], abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "exact"),
    [("k1", 0.04746866), ("k3", 0.04746866)],
)
def test_estimators_average_to_the_exact_kl(kind, exact):
    policy = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    reference = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
    kl = estimate_kl(policy.log(), reference.log(), kind=kind)
    assert float(policy @ kl) == pytest.approx(exact, abs=1e-6)
