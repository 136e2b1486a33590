import pytest

from strop.telemetry.learning_curve import learning_curve, steps_to


def records(*rewards, **more):
    return [{"step": i, "rollout/reward_before_filter": r, **more} for i, r in enumerate(rewards)]


def test_the_mean_is_of_the_last_five_steps_and_of_fewer_at_the_start():
    points = learning_curve(records(0.0, 1.0, 0.5, 0.0, 0.0, 1.0, 1.0))
    assert points == [
        *((1, 0.0), (2, 0.5), (3, 0.5), (4, 0.375)),
        *((5, pytest.approx(0.3)), (6, 0.5), (7, 0.5)),
    ]


def test_groups_that_a_filter_drops_do_not_hide_what_the_policy_earned():
    points = learning_curve(records(0.9, 0.9, **{"reward/mean": 0.5}))
    assert [point.value for point in points] == [0.9, 0.9]


def test_a_step_without_a_reward_is_passed_over_and_keeps_its_number():
    assert learning_curve(records(0.5, None, 1.0)) == [(1, 0.5), (3, 0.75)]


def test_given_rows_have_no_curve():
    assert learning_curve([{"step": 0, "train/loss": 1.0}]) == []


def test_a_single_lucky_step_does_not_reach_the_level():
    curve = learning_curve(records(0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0))
    assert steps_to(curve, 0.8) == 8
    assert steps_to(curve, 0.9) is None


def test_the_level_itself_is_reached():
    assert steps_to(learning_curve(records(0.8)), 0.8) == 1
