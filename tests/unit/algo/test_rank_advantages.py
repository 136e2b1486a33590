"""Advantages from the order alone."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.algo.ranks import rank_advantages, rank_rewards
from strop.errors import InputError


def advantages(scores, groups=None, trajectories=None, **options):
    n = len(scores)
    return rank_advantages(
        np.array(scores, np.float64),
        groups=np.zeros(n, np.int64) if groups is None else np.array(groups),
        trajectories=np.arange(n) if trajectories is None else np.array(trajectories),
        **options,
    )


def test_a_judge_that_finds_all_equal_teaches_nothing():
    for score, ties in product((0.0, 0.1, -3.0), ("average", "min")):
        assert not advantages([score] * 5, ties=ties).any(), (score, ties)


def test_scores_that_differ_by_rounding_are_tied():
    assert rank_rewards(np.array([0.1 + 0.2, 0.3, 1.0])).tolist() == [0.25, 0.25, 1.0]


def test_how_far_scores_are_apart_does_not_matter():
    assert advantages([1, 2, 100]).tolist() == advantages([-1, 0, 0.1]).tolist()


def test_groups_are_ranked_apart():
    assert advantages([1, 20, 2, 10], groups=[0, 1, 0, 1]).tolist() == pytest.approx(
        [-0.7071058, 0.7071058, 0.7071058, -0.7071058], abs=1e-6
    )


def test_a_trajectory_takes_one_place_however_many_samples_it_has():
    assert advantages([1, 3, 3, 3, 2], trajectories=[0, 1, 1, 1, 2]) == pytest.approx(
        [-1, 1, 1, 1, 0], abs=1e-5
    )


def test_one_alone_cannot_be_ranked():
    with pytest.raises(InputError, match=r"^group 0: 1 trajectory"):
        advantages([1])


@given(scores=st.lists(st.integers(-3, 3), min_size=2, max_size=9), seed=st.integers(0, 9))
@settings(max_examples=25, deadline=None)
def test_renaming_the_players_renames_their_rewards(scores, seed):
    moved = np.random.default_rng(seed).permutation(len(scores))
    rewards = rank_rewards(np.array(scores, np.float64))
    assert rank_rewards(np.array(scores, np.float64)[moved]).tolist() == rewards[moved].tolist()
    assert float(rewards.sum()) == pytest.approx(len(scores) / 2)
