"""Rewards on single tokens."""

import numpy as np
import pytest

from strop.algo.spans import Spans
from strop.algo.token_rewards import outcome_rewards, placed_rewards, turn_ends
from strop.errors import NonFinite

NAN = float("nan")


def outcome(rewards, mask, offsets, trajectories=None):
    offsets = np.array(offsets)
    spans = (
        Spans.of_samples(offsets)
        if trajectories is None
        else Spans.of_trajectories(offsets, np.array(trajectories))
    )
    return outcome_rewards(np.array(rewards, np.float64), mask_N=np.array(mask, bool), spans=spans).tolist()


def placed(rewards, ends, mask, offsets):
    return placed_rewards(
        np.array(rewards, np.float64),
        end_K=np.array(ends),
        mask_N=np.array(mask, bool),
        spans=Spans.of_samples(np.array(offsets)),
    ).tolist()


def test_the_outcome_is_not_on_a_tool_token_that_comes_last():  # miles#1827, #1720
    assert outcome([2, -1], [0, 1, 1, 0, 0, 1, 1], [0, 5, 7]) == [0, 0, 2, 0, 0, 0, -1]


def test_a_sample_that_is_not_trained_gets_no_outcome_and_is_no_obstacle():
    assert outcome([2, 5, -1], [1, 1, 0, 0, 1], [0, 2, 4, 5]) == [0, 2, 0, 0, -1]


def test_a_sample_without_tokens_gets_no_outcome():
    assert outcome([2, 5, -1], [1, 1, 1], [0, 2, 2, 3]) == [0, 2, -1]


def test_the_outcome_of_a_trajectory_is_there_once():
    assert outcome([2, 1, 2], [1, 1, 1, 1, 1, 0], [0, 2, 4, 6], [7, 3, 7]) == [0, 0, 0, 1, 2, 0]


def test_the_outcome_of_a_trajectory_whose_last_sample_is_not_trained_is_on_an_earlier_one():
    assert outcome([2, 1, 2], [1, 1, 1, 1, 0, 0], [0, 2, 4, 6], [7, 3, 7]) == [0, 2, 0, 1, 0, 0]


def test_a_failed_sample_does_not_count_in_the_outcome_of_its_trajectory():
    assert outcome([2, NAN], [1, 1, 1], [0, 2, 3], [7, 7]) == [0, 0, 2]


def test_a_missing_outcome_is_named_where_it_would_be_trained_on():
    with pytest.raises(NonFinite, match=r"^1 rewards of trained tokens are not finite; the first is nan$"):
        outcome([NAN, 1], [1, 1], [0, 1, 2])
    assert outcome([NAN, 1], [0, 1], [0, 1, 2]) == [0, 1]


def test_a_turns_reward_is_on_its_last_trained_token():
    assert placed([0.5, 1], [2, 4], [1, 1, 0, 1, 0], [0, 5]) == [0, 0.5, 0, 1, 0]


def test_the_reward_of_a_turn_that_is_not_trained_credits_what_led_to_it():
    assert placed([0.5, 1], [1, 3], [1, 0, 0, 0], [0, 4]) == [1.5, 0, 0, 0]


def test_a_turns_reward_never_goes_to_another_sample():
    assert placed([3], [2], [1, 1, 0, 1], [0, 2, 4]) == [0, 0, 0, 0]


def test_turns_end_where_sampling_does():
    sampled = np.array([0, 1, 1, 0, 1, 1, 1, 0, 0, 1], bool)
    assert turn_ends(sampled, np.array([0, 5, 5, 7, 10])).tolist() == [2, 4, 6, 9]
    assert turn_ends(np.zeros(0, bool), np.array([0])).tolist() == []
