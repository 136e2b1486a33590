"""Advantages from process rewards."""

import numpy as np
import pytest

from strop.algo.process import step_gains
from strop.algo.step_advantages import step_advantages
from strop.algo.step_worth import aggregate_steps
from strop.errors import InputError


def credit(rewards, ends, offsets, groups=None, trajectories=None, mask=None):
    n = len(offsets) - 1
    return step_advantages(
        np.array(rewards, np.float64),
        end_K=np.array(ends),
        mask_N=np.ones(offsets[-1], bool) if mask is None else np.array(mask, bool),
        offsets=np.array(offsets),
        groups=np.zeros(n, np.int64) if groups is None else np.array(groups),
        trajectories=np.arange(n) if trajectories is None else np.array(trajectories),
    )


def test_equal_steps_give_exactly_zero():
    assert not credit([0.1] * 8, range(8), [0, 5, 8]).any()


def test_groups_are_standardised_apart():
    apart = credit([1, 0, 30, 10], [0, 1, 2, 3], [0, 1, 2, 3, 4], groups=[0, 0, 1, 1])
    assert apart == pytest.approx([0.7071, -0.7071, 0.7071, -0.7071], abs=1e-4)


def test_a_token_is_credited_with_its_own_step_and_the_later_ones():
    found = credit([1, 0, 0, 1], [1, 3, 4, 5], [0, 4, 6])
    unit = 0.5 / (np.sqrt(1 / 3) + 1e-6)
    assert found == pytest.approx([0, 0, -unit, -unit, 0, unit], abs=1e-9)


def test_a_tools_tokens_are_no_steps_end():
    found = credit([1, 0], [2, 3], [0, 3, 4], mask=[1, 1, 0, 1])
    assert found == pytest.approx([0.7071, 0.7071, 0, -0.7071], abs=1e-4)


def test_steps_of_later_samples_of_a_trajectory_count_for_the_earlier():
    found = credit([1, 1, 0], [0, 1, 2], [0, 1, 2, 3], trajectories=[5, 5, 6])
    assert found[0] == pytest.approx(2 * found[1])


def test_steps_in_any_order_are_the_same_steps():
    rewards, ends = np.array([1.0, 0, 0.5, 3]), np.array([1, 3, 4, 5])
    moved = [2, 0, 3, 1]
    assert credit(rewards[moved], ends[moved], [0, 4, 6]) == pytest.approx(credit(rewards, ends, [0, 4, 6]))


def test_one_trajectory_alone_is_refused():
    with pytest.raises(InputError, match=r"^group 0: 1 trajectory"):
        credit([1, 2], [0, 1], [0, 2])


def test_a_group_with_a_single_step_gives_zero():
    assert not credit([1], [0], [0, 1, 2]).any()


@pytest.mark.parametrize("kind", ["min", "prod"])
def test_empty_steps_do_not_raise_an_aggregate(kind):
    scores = np.array([0.9, 0.8, 0.6])
    assert aggregate_steps(np.append(scores, [1.0, 1.0]), kind=kind) <= aggregate_steps(scores, kind=kind)


def test_steps_that_gain_nothing_do_not_raise_the_return():
    short, long = np.array([0.5, 0.9]), np.array([0.5, 0.5, 0.5, 0.9, 0.9])
    assert step_gains(long, start=0.2).sum() == pytest.approx(step_gains(short, start=0.2).sum())
