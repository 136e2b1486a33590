"""Token weights: denominators of the whole update."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strop.algo.aggregate import token_weights

MODES = ["token_mean", "seq_mean_token_mean", "seq_mean_token_sum", "seq_sum_const"]


def weigh(aggregation, mask, trajectory, update=None, constant=8):
    return token_weights(
        aggregation,
        mask=np.array(mask, bool),
        trajectory_of_token=np.array(trajectory, np.int64),
        update_of_token=np.zeros(len(mask), np.int64) if update is None else np.array(update, np.int64),
        constant=constant,
    )


def test_four_modes_are_four_different_weightings():  # verl#931
    for aggregation, weights in {
        "token_mean": [1 / 3, 1 / 3, 0, 1 / 3],
        "seq_mean_token_mean": [1 / 4, 1 / 4, 0, 1 / 2],
        "seq_mean_token_sum": [1 / 2, 1 / 2, 0, 1 / 2],
        "seq_sum_const": [1 / 16, 1 / 16, 0, 1 / 16],
    }.items():
        assert weigh(aggregation, [1, 1, 0, 1], [0, 0, 0, 1]) == pytest.approx(weights), aggregation


def test_mean_of_a_sequence_leaves_tokens_out_that_are_not_trained():  # AReaL#1346
    for aggregation in MODES[:2]:
        weights = weigh(aggregation, [1, 1, 0, 0], [0] * 4)
        assert float(weights @ np.array([1, 1, 10, 10])) == 1.0, aggregation


def test_fully_masked_trajectory_is_not_counted():
    for aggregation in MODES[1:]:
        with_it = weigh(aggregation, [1, 1, 0, 0], [0, 0, 1, 1])
        without = weigh(aggregation, [1, 1], [0, 0])
        assert with_it == pytest.approx([*without, 0, 0]), aggregation


def test_fully_masked_update_has_zero_weights():
    for aggregation in MODES:
        assert weigh(aggregation, [0, 0], [0, 1]).tolist() == [0, 0], aggregation


def test_no_tokens_have_no_weights():
    for aggregation in MODES:
        assert weigh(aggregation, [], []).shape == (0,), aggregation


def test_updates_have_denominators_of_their_own():
    for aggregation in MODES:
        together = weigh(aggregation, [1] * 5, [0, 0, 1, 2, 2], update=[0, 0, 0, 1, 1])
        first, second = weigh(aggregation, [1] * 3, [0, 0, 1]), weigh(aggregation, [1] * 2, [2, 2])
        assert together.tolist() == [*first, *second], aggregation


def test_rank_with_few_tokens_is_not_overweighted():  # prime-rl#2562
    weights = weigh("token_mean", [1] * 1010, [0] * 10 + [1] * 1000)
    losses = np.array([1.0] * 10 + [2.0] * 1000)
    assert float(weights @ losses) == pytest.approx((10 * 1 + 1000 * 2) / 1010, rel=1e-6)


def test_siblings_in_two_microbatches_share_their_trajectory_denominator():
    losses = np.arange(1, 13, dtype=np.float64)
    trajectory = np.repeat([0, 0, 0, 1], 3)
    whole = weigh("seq_mean_token_mean", [1] * 12, trajectory)
    halves = [slice(0, 6), slice(6, 12)]
    assert sum(whole[h] @ losses[h] for h in halves) == pytest.approx(8.0)
    per_microbatch = [weigh("seq_mean_token_mean", [1] * 6, trajectory[h]) for h in halves]
    assert sum(w @ losses[h] for w, h in zip(per_microbatch, halves, strict=True)) != pytest.approx(8.0)


def test_sequence_cut_in_two_sums_to_the_whole():
    losses = np.random.default_rng(0).normal(size=16)
    weights = weigh("seq_mean_token_mean", [1] * 16, [0] * 16)
    first, second = np.r_[0:4, 8:12], np.r_[4:8, 12:16]
    cut = weights[first] @ losses[first] + weights[second] @ losses[second]
    assert cut == pytest.approx(losses.mean(), abs=1e-6)


@given(
    tokens=st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=40),
    aggregation=st.sampled_from(MODES),
    seed=st.integers(0, 9),
)
def test_weights_do_not_depend_on_the_order_of_tokens(tokens, aggregation, seed):
    mask, trajectory = (np.array(column) for column in zip(*tokens, strict=True))
    order = np.random.default_rng(seed).permutation(len(mask))
    weights = weigh(aggregation, mask, trajectory, update=trajectory % 2)
    moved = weigh(aggregation, mask[order], trajectory[order], update=trajectory[order] % 2)
    assert moved.tolist() == weights[order].tolist()


@given(tokens=st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=40))
@pytest.mark.parametrize("aggregation", MODES[:2])
def test_weights_of_the_two_means_sum_to_one(tokens, aggregation):
    mask, trajectory = zip(*tokens, strict=True)
    total = float(weigh(aggregation, mask, trajectory).sum(dtype=np.float64))
    assert total == pytest.approx(1.0 if any(mask) else 0.0, abs=1e-6)
