"""Discounted returns and GAE over packed columns."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.algo.returns import advantage_estimates, discounted_returns
from strop.algo.spans import Spans
from strop.errors import NonFinite

NAN = float("nan")


def loop(reward, value, mask, discount, trace, behind=0.0):
    """One sample, as the formula says: the next trained token is found by looking for it."""
    trained = [t for t in range(len(mask)) if mask[t]]
    found, advantage = np.zeros(len(mask)), 0.0
    for t in reversed(trained):
        delta = reward[t] + discount * behind - value[t]
        found[t] = advantage = delta + discount * trace * advantage
        behind = value[t]
    return found


def drawn(lengths, seed):
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return rng.normal(size=n), rng.normal(size=n), rng.random(n) < 0.6, offsets


def estimates(reward_N, value_N, mask_N, offsets, trajectories=None, **options):
    spans = (
        Spans.of_samples(offsets) if trajectories is None else Spans.of_trajectories(offsets, trajectories)
    )
    settings = {"discount": 0.99, "trace": 0.95} | options
    return advantage_estimates(reward_N, value_N, mask_N=mask_N, spans=spans, **settings)


lengths_of_samples = st.lists(st.integers(0, 30), min_size=1, max_size=6)


@given(
    lengths=lengths_of_samples,
    seed=st.integers(0, 99),
    chunk=st.sampled_from([1, 7, 128]),
    discount=st.sampled_from([0.0, 0.9, 1.0]),
    trace=st.sampled_from([0.0, 0.95, 1.0]),
)
@settings(max_examples=25, deadline=None)
def test_estimates_of_a_packed_step_are_those_of_its_samples(lengths, seed, chunk, discount, trace):
    reward_N, value_N, mask_N, offsets = drawn(lengths, seed)
    behind = np.random.default_rng(seed).normal(size=len(lengths))
    found = estimates(
        reward_N, value_N, mask_N, offsets, discount=discount, trace=trace, next_value_S=behind, chunk=chunk
    )
    rows = [slice(a, b) for a, b in pairwise(offsets)]
    expected = np.concatenate(
        [
            loop(reward_N[r], value_N[r], mask_N[r], discount, trace, b)
            for r, b in zip(rows, behind, strict=True)
        ]
    )
    np.testing.assert_allclose(found.advantage_N, expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.return_N[mask_N], (expected + value_N)[mask_N], rtol=0, atol=1e-10)
    assert not found.return_N[~mask_N].any()


@given(lengths=lengths_of_samples, seed=st.integers(0, 99))
@settings(max_examples=15, deadline=None)
def test_tokens_that_are_not_trained_might_as_well_not_be_there(lengths, seed):
    reward_N, value_N, mask_N, offsets = drawn(lengths, seed)
    kept = np.concatenate([[0], np.cumsum(mask_N)])[offsets].astype(np.int64)
    whole = estimates(reward_N, value_N, mask_N, offsets).advantage_N[mask_N]
    without = estimates(reward_N[mask_N], value_N[mask_N], np.ones(int(mask_N.sum()), bool), kept).advantage_N
    np.testing.assert_allclose(whole, without, rtol=0, atol=1e-10)


def test_an_observation_neither_earns_nor_cuts_credit_nor_is_discounted_for():  # miles#1827, slime, verl
    mask_N, offsets = np.array([1, 0, 0, 1], bool), np.array([0, 4])
    returns = discounted_returns(
        np.array([0, 100.0, 0, 1]), mask_N=mask_N, spans=Spans.of_samples(offsets), discount=0.5
    )
    assert returns.tolist() == [0.5, 0, 0, 1]


def test_what_an_untrained_token_holds_changes_nothing():
    for nothing in (NAN, float("inf"), -float("inf")):
        reward_N, value_N, mask_N, offsets = drawn([9, 4], 3)
        before = estimates(reward_N, value_N, mask_N, offsets)
        reward_N[~mask_N], value_N[~mask_N] = nothing, nothing
        after = estimates(reward_N, value_N, mask_N, offsets)
        assert after.advantage_N.tolist() == before.advantage_N.tolist(), nothing
        assert after.return_N.tolist() == before.return_N.tolist(), nothing


@pytest.mark.parametrize("column", ["reward", "value"])
def test_what_is_no_number_on_a_trained_token_is_named(column):
    reward_N, value_N, mask_N, offsets = drawn([9, 4], 3)
    {"reward": reward_N, "value": value_N}[column][np.flatnonzero(mask_N)[0]] = NAN
    with pytest.raises(NonFinite, match=f"^{column} of 1 of "):
        estimates(reward_N, value_N, mask_N, offsets)


def test_with_a_full_trace_estimates_are_returns_less_values():
    reward_N, value_N, mask_N, offsets = drawn([40, 7], 1)
    found = estimates(reward_N, value_N, mask_N, offsets, trace=1.0)
    returns = discounted_returns(reward_N, mask_N=mask_N, spans=Spans.of_samples(offsets), discount=0.99)
    np.testing.assert_allclose(found.return_N, returns, rtol=0, atol=1e-10)


def test_within_samples_an_earlier_sample_of_a_trajectory_sees_nothing_of_the_later():
    reward_N, mask_N, offsets = np.array([0, 0, 0, 1.0]), np.ones(4, bool), np.array([0, 2, 4])
    alone = discounted_returns(reward_N, mask_N=mask_N, spans=Spans.of_samples(offsets), discount=1.0)
    assert alone.tolist() == [0, 0, 1, 1]


def test_within_trajectories_it_is_credited_with_what_the_later_earns():
    reward_N, mask_N, offsets = np.array([0, 0, 5.0, 0, 1]), np.ones(5, bool), np.array([0, 2, 3, 5])
    spans = Spans.of_trajectories(offsets, np.array([4, 9, 4]))
    together = discounted_returns(reward_N, mask_N=mask_N, spans=spans, discount=0.5)
    assert together.tolist() == [0.125, 0.25, 5, 0.5, 1]


def test_the_state_behind_a_cut_trajectory_is_that_behind_its_last_sample():
    mask_N, offsets = np.ones(3, bool), np.array([0, 1, 2, 3])
    spans = Spans.of_trajectories(offsets, np.array([4, 9, 4]))
    found = discounted_returns(
        np.zeros(3), mask_N=mask_N, spans=spans, discount=0.5, next_value_S=np.array([7.0, 0, 8])
    )
    assert found.tolist() == [2, 0, 4]


def test_a_cut_behind_a_tools_answer_is_seen_by_the_last_trained_token():
    found = discounted_returns(
        np.zeros(3),
        mask_N=np.array([1, 1, 0], bool),
        spans=Spans.of_samples(np.array([0, 3])),
        discount=0.5,
        next_value_S=np.array([8.0]),
    )
    assert found.tolist() == [2, 4, 0]


def test_nothing_trained_at_all_gives_zeros():
    reward_N, value_N, _, offsets = drawn([5, 0, 2], 0)
    found = estimates(reward_N, value_N, np.zeros(7, bool), offsets)
    assert not found.advantage_N.any()
    assert not found.return_N.any()


def test_no_tokens_have_no_returns():
    assert discounted_returns(
        np.zeros(0), mask_N=np.zeros(0, bool), spans=Spans.of_samples(np.zeros(1, np.int64)), discount=0.9
    ).shape == (0,)
