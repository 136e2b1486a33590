"""Reward models: hand-worked losses of pairs, lists and marks, and what a score can and cannot say."""

import itertools
import math

import numpy as np
import pytest
import torch

from strop.algo.reward_model import (
    aligned,
    bradley_terry,
    bradley_terry_per_token,
    end_rows,
    num_right,
    plackett_luce,
    pointwise,
)


def column(*values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(
    ("chosen", "rejected", "options", "value"),
    [
        pytest.param(1.2, 0.4, {}, 0.37110067, id="2.15-bt"),
        pytest.param(1.2, 0.4, {"margin_P": column(0.5)}, 0.55435524, id="2.15-margin"),
        pytest.param(1.2, 0.4, {"centering": 0.01}, 0.39670067, id="2.15-centring"),
        pytest.param(1e4, -1e4, {}, 0.0, id="far-apart"),
        pytest.param(-1e4, 1e4, {}, 2e4, id="far-apart-and-wrong"),
    ],
)
def test_bradley_terry_of_a_pair(chosen, rejected, options, value):
    assert bradley_terry(column(chosen), column(rejected), **options).tolist() == pytest.approx(
        [value], abs=1e-6
    )


@pytest.mark.parametrize(
    ("scores", "value"),
    [
        pytest.param((2.0, 1.0, 0.0), 0.72086765, id="2.15-plackett-luce"),
        pytest.param((1.2, 0.4), 0.37110067, id="two-are-bradley-terry"),
        pytest.param((3.0,), 0.0, id="one-has-no-rival"),
        pytest.param((1.0, 1.0, 1.0), math.log(6), id="equal-are-log-of-the-orders"),
    ],
)
def test_plackett_luce_of_a_list_in_order(scores, value):
    assert plackett_luce(column(*scores)[None]).tolist() == pytest.approx([value], abs=1e-6)


def test_plackett_luce_is_a_distribution_over_orders():
    lists = torch.stack([column(*order) for order in itertools.permutations((0.3, -1.0, 2.0, 0.7))])
    assert (-plackett_luce(lists)).exp().sum().item() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("scores", [(1e4, 0.0, -1e4), (-1e4, 0.0, 1e4), (1e4, 1e4, 1e4)])
def test_extreme_lists_in_float32_stay_finite(scores):
    score = torch.tensor([scores], requires_grad=True)
    loss = plackett_luce(score)
    loss.sum().backward()
    assert loss.isfinite().all()
    assert score.grad.isfinite().all()


def test_adding_to_both_scores_changes_nothing_unless_they_are_centred():
    chosen, rejected = column(1.2, -0.5), column(0.4, 2.0)
    assert bradley_terry(chosen + 7, rejected + 7).tolist() == pytest.approx(
        bradley_terry(chosen, rejected).tolist(), abs=1e-12
    )
    centred = [bradley_terry(chosen + c, rejected + c, centering=0.01).sum().item() for c in (0, 7)]
    assert centred[1] > centred[0] + 1


def test_marks_are_met_by_regression():
    score = column(0.5, -1.0).requires_grad_()
    loss = pointwise(score, column(1.0, -1.0))
    loss.sum().backward()
    assert loss.tolist() == [0.25, 0.0]
    assert score.grad.tolist() == [-1.0, 0.0]


def test_cyclic_preferences_are_right_in_two_of_three_pairs_at_best():
    """a > b > c > a: Bradley–Terry assumes an order, so no scores agree with all three."""
    scores = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    better, worse = torch.tensor([0, 1, 2]), torch.tensor([1, 2, 0])
    best = 0
    for step in range(100):
        if step % 20 == 0:  # from many starts, all orders among them
            with torch.no_grad():
                scores.copy_(torch.randn(3, generator=torch.Generator().manual_seed(step)))
        best = max(best, num_right(scores[better], scores[worse]))
        bradley_terry(scores[better], scores[worse]).sum().backward()
        with torch.no_grad():
            scores -= 0.5 * scores.grad
            scores.grad.zero_()
    assert best == 2
    assert (scores.max() - scores.min()).item() < 0.1


def test_a_model_that_says_the_same_of_all_is_never_right():
    assert num_right(column(1, 1, 2), column(1, 0, 3)) == 1


def test_the_end_is_found_by_its_place_where_padding_is_the_end_of_a_turn():
    ids, mask = [1, 2, 2, 42, 3, 5, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1, 0, 0]  # 0 is both
    assert end_rows([sum(mask)]).tolist() == [6]
    assert ids.index(0) == 6  # a search for it is right only as long as no token before it is the same
    assert end_rows([7, 1, 2]).tolist() == [6, 7, 9]


@pytest.mark.parametrize(
    ("chosen_ids", "rejected_ids", "chosen", "rejected"),
    [
        ([1, 2, 3], [1, 5, 6], [1, 2], [1, 2]),
        ([1, 2, 3, 4], [1, 9], [1, 2, 3], [1, 1, 1]),
        ([1], [1, 2, 3], [0, 0], [1, 2]),
    ],
)
def test_tokens_are_compared_from_where_the_two_differ(chosen_ids, rejected_ids, chosen, rejected):
    rows = aligned(np.array(chosen_ids), np.array(rejected_ids))
    assert (rows.chosen.tolist(), rows.rejected.tolist()) == (chosen, rejected)


def test_two_responses_that_are_the_same_are_no_pair():
    with pytest.raises(ValueError, match="the same tokens"):
        aligned(np.array([1, 2]), np.array([1, 2]))


def test_loss_of_every_token_is_the_mean_of_each_pair():
    chosen, rejected = column(1.2, 0.9, 0.0), column(0.4, 0.4, 0.0)
    loss = bradley_terry_per_token(chosen, rejected, pair_M=torch.tensor([0, 0, 1]), num_pairs=2)
    alone = bradley_terry(chosen, rejected).tolist()
    assert loss.tolist() == pytest.approx([(alone[0] + alone[1]) / 2, math.log(2)], abs=1e-12)
