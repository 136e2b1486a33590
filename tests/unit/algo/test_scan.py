"""The chunked scan against the loop that it stands for."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.algo.scan import backward_scan, masked_scan


def loop(gain_N, mask_N, weight, inflow=0.0):
    found, behind = np.zeros(len(gain_N)), inflow
    for t in range(len(gain_N) - 1, -1, -1):
        if mask_N[t]:
            behind = gain_N[t] + weight * behind
        found[t] = behind
    return found


def drawn(length, seed=0):
    rng = np.random.default_rng((length, seed))
    return rng.normal(size=length), rng.random(length) < 0.6


def scan(gain_N, mask_N, weight, **options):
    last = np.array([len(gain_N) - 1])
    return masked_scan(gain_N, mask_N=mask_N, weight=weight, last_places=last, **options)


def test_scan_equals_the_loop():
    for length, weight in product((1, 2, 127, 128, 129, 1000), (0, 0.9, 1)):
        gain_N, mask_N = drawn(length)
        expected = loop(gain_N, mask_N, weight)
        for chunk in (1, 7, 128):
            found, case = scan(gain_N, mask_N, weight, chunk=chunk), f"{length=} {weight=} {chunk=}"
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10, err_msg=case)


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    chunk=st.sampled_from([1, 7, 128]),
    weight=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    seed=st.integers(0, 9),
)
@settings(max_examples=25, deadline=None)
def test_one_packed_row_equals_the_separate_rows(lengths, chunk, weight, seed):
    gain_N, mask_N = drawn(sum(lengths), seed)
    inflow = np.random.default_rng(seed).normal(size=len(lengths))
    ends = np.cumsum(lengths)
    found = masked_scan(
        gain_N, mask_N=mask_N, weight=weight, last_places=ends - 1, inflow=inflow, chunk=chunk
    )
    rows = [slice(end - n, end) for n, end in zip(lengths, ends, strict=True)]
    alone = [loop(gain_N[r], mask_N[r], weight, i) for r, i in zip(rows, inflow, strict=True)]
    np.testing.assert_allclose(found, np.concatenate(alone), rtol=0, atol=1e-10)


def test_powers_of_a_small_weight_do_not_underflow_into_the_result():
    gain_N, mask_N = np.ones(1000), np.ones(1000, bool)
    for weight in (1e-4, 0.01, 0.5):
        found = scan(gain_N, mask_N, weight, chunk=500)
        assert np.isfinite(found).all(), weight
        np.testing.assert_allclose(found, loop(gain_N, mask_N, weight), rtol=1e-14, err_msg=str(weight))


def test_a_gain_of_the_last_token_reaches_the_first_over_many_chunks():
    gain_N = np.zeros(1001)
    gain_N[-1] = 1.0
    found = scan(gain_N, np.ones(1001, bool), 0.999, chunk=7)
    assert found[0] == pytest.approx(0.999**1000, rel=1e-12)


def test_nothing_is_scanned_to_nothing():
    assert backward_scan(np.zeros(0), np.zeros(0)).shape == (0,)


def test_arguments_of_a_scan_stay_as_they_are():
    gain_N, mask_N = drawn(50)
    decay_N = np.full(50, 0.9)
    before = gain_N.copy()
    scan(gain_N, mask_N, 0.9, inflow=3.0)
    backward_scan(decay_N, gain_N)
    assert gain_N.tolist() == before.tolist()
    assert set(decay_N.tolist()) == {0.9}
