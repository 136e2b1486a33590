"""Whitening over the trained tokens of the step."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.algo.whiten import whiten
from strop.errors import NonFinite

NAN = float("nan")


def test_statistics_leave_out_tokens_that_are_not_trained():  # AReaL#1346
    white = whiten(np.array([1.0, 3, 10, NAN]), np.array([1, 1, 0, 0], bool), variance="population")
    assert (white.mean, white.variance) == (2, 1)
    assert white.values_N.tolist() == [-1, 1, 0, 0]


def test_no_trained_token_or_one_is_no_nan_and_is_told():  # ROLL 370cb24c
    for case in product(([], [5.0]), ("bessel", "population")):
        values, variance = case
        column = np.array([*values, NAN, 3.0])
        mask = np.array([*(True for _ in values), False, False])
        white = whiten(column, mask, variance=variance)
        assert white.values_N.tolist() == [0.0] * len(column), case
        assert not white.is_scaled, case
        assert white.mean == sum(values), case


def test_without_a_shift_the_mean_stays():
    values, mask = np.array([1.0, 3, 5]), np.ones(3, bool)
    kept = whiten(values, mask, variance="bessel", shift_mean=False)
    assert kept.values_N == pytest.approx([2, 3, 4], abs=1e-6)
    assert whiten(np.full(3, 0.1), mask, variance="bessel", shift_mean=False).values_N == pytest.approx(
        [0.1] * 3
    )


def test_values_that_differ_by_rounding_are_constant():  # slime#1674
    values = np.array([0.1 + 0.2, 0.3, float(np.float32(0.3))])
    assert not whiten(values, np.ones(3, bool), variance="bessel").values_N.any()


def test_a_trained_token_that_is_no_number_is_named():
    with pytest.raises(
        NonFinite, match=r"^advantage of 1 of 2 trained tokens is not finite .*token 2 .* has inf"
    ):
        whiten(np.array([1, NAN, np.inf]), np.array([1, 0, 1], bool), variance="bessel")


def test_what_is_whitened_stays_as_it_is():
    values = np.array([1.0, 2, 4])
    whiten(values, np.ones(3, bool), variance="bessel")
    assert values.tolist() == [1, 2, 4]


@given(
    values=st.lists(st.floats(-10, 10, width=32), min_size=2, max_size=40),
    seed=st.integers(0, 9),
    variance=st.sampled_from(["bessel", "population"]),
)
@settings(max_examples=25, deadline=None)
def test_whitening_does_not_depend_on_how_tokens_are_laid_out(values, seed, variance):
    """Over ranks, halves of a sequence or samples: the step is one column (slime#2235)."""
    column = np.array(values)
    moved = np.random.default_rng(seed).permutation(len(values))
    white = whiten(column, np.ones(len(column), bool), variance=variance).values_N
    again = whiten(column[moved], np.ones(len(column), bool), variance=variance).values_N
    assert again == pytest.approx(white[moved], abs=1e-9)
    assert np.isfinite(white).all()
    assert abs(white.mean()) < 1e-6


def test_shift_and_scale_of_rewards_change_nothing():
    values = np.array([0.0, 1, 1, 4])
    white = whiten(values, np.ones(4, bool), variance="population").values_N
    for shift, scale in product((-5, 3), (0.5, 8.0)):
        again = whiten(values * scale + shift, np.ones(4, bool), variance="population").values_N
        assert again == pytest.approx(white, abs=1e-9), (shift, scale)
