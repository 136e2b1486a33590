"""95 % intervals in worked numbers."""

import math

import pytest

from strop.eval.intervals import interval_of, standard_error, wilson


def test_wilson():
    for passed, n, low, high in (
        (8, 10, 0.490162, 0.943318),
        (0, 10, 0.0, 0.277533),
        (10, 10, 0.722467, 1.0),
        (50, 100, 0.403832, 0.596168),
    ):
        found = wilson(passed=passed, n=n)
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6), (passed, n)


def test_one_sample_of_0_or_1_a_prompt_gives_wilson():
    found = interval_of(0.8, [[1.0]] * 8 + [[0.0]] * 2)
    assert found == wilson(passed=8, n=10)


def test_several_samples_a_prompt_give_a_normal_interval_over_prompts():
    # means 0.5, 1, 0: deviation 0.5
    found = interval_of(0.5, [[0, 1], [1, 1], [0, 0]])
    half = 1.959964 * 0.5 / math.sqrt(3)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-6)
    assert found.method == "normal"


def test_a_hundred_equal_samples_are_no_surer_than_one():
    """Samples of a prompt are not independent draws."""
    few, many = [[0.0], [1.0], [1.0]], [[0.0] * 100, [1.0] * 100, [1.0] * 100]
    assert standard_error(few) == standard_error(many)


def test_rewards_that_are_not_0_or_1_give_a_normal_interval():
    found = interval_of(0.5, [[0.2], [0.8]])
    assert found is not None
    assert found.method == "normal"


def test_a_prompt_alone_cannot_tell():
    assert interval_of(0.5, [[0.5, 0.5]]) is None
    assert interval_of(math.nan, []) is None


def test_prompts_that_never_pass_are_not_said_to_be_known_for_certain():
    found = interval_of(0.0, [[0.0] * 4] * 4)
    assert found == wilson(passed=0, n=4)
    assert (found.low, round(found.high, 4)) == (0.0, 0.4899)
    assert wilson(passed=4, n=4).high == 1.0
