"""Baselines of roles in self-play."""

import numpy as np
import pytest

from strop.algo.roles import role_advantages


def credit(rewards, roles, trajectories=None, baselines=None, **options):
    return role_advantages(
        np.array(rewards, np.float64),
        roles=roles,
        trajectories=np.arange(len(rewards)) if trajectories is None else np.array(trajectories),
        baselines=baselines or {},
        **options,
    )


def test_the_two_players_of_a_game_have_baselines_of_their_own():
    found = credit([1, -1], ["first", "second"], trajectories=[0, 0], decay=0.5)
    assert found.baselines == {"first": 0.5, "second": -0.5}
    assert found.advantages.tolist() == [0.5, -0.5]


def test_samples_of_one_trajectory_and_role_move_the_baseline_once():
    found = credit([1, 1, 0], ["a", "a", "a"], trajectories=[3, 3, 4], decay=0.5)
    assert found.advantages.tolist() == [0.5, 0.5, -0.25]
    assert found.baselines == {"a": 0.25}


def test_a_step_goes_on_where_the_last_ended():
    both = credit([1, -1, 1], ["a"] * 3)
    first = credit([1], ["a"])
    rest = credit([-1, 1], ["a"] * 2, baselines=first.baselines)
    assert rest.baselines == both.baselines
    assert [*first.advantages, *rest.advantages] == pytest.approx(both.advantages.tolist())


def test_baselines_of_before_are_not_changed_and_absent_roles_are_kept():
    before = {"a": 0.5, "b": -0.5}
    found = credit([1], ["a"], baselines=before, decay=0.5)
    assert before == {"a": 0.5, "b": -0.5}
    assert found.baselines == {"a": 0.75, "b": -0.5}


def test_a_failed_sample_moves_nothing():
    found = credit([float("nan"), 1], ["a", "a"], decay=0.5)
    assert found.advantages.tolist() == [0, 0.5]
    assert found.baselines == {"a": 0.5}
