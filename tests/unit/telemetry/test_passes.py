"""pass@k in worked numbers (arXiv:2107.03374), for rewards that are not 0 and 1, groups that are not even."""

import itertools

import pytest
from cases import case

from strop.telemetry.metrics import Grouped, Mean
from strop.telemetry.passes import figure, ks, pass_at


def test_worked_numbers():
    cases = [
        (1, 4, 1, 1 / 4),
        (2, 4, 1, 1 / 2),
        (4, 4, 1, 1.0),
        (2, 10, 3, 1 - (7 * 6) / (10 * 9)),
        (5, 10, 0, 0.0),
        (8, 10, 3, 1.0),
        (100, 200, 1, 0.5),
    ]
    for k, samples, passed, expected in cases:
        with case(k, samples, passed):
            assert pass_at(k, samples=samples, passed=passed) == pytest.approx(expected, abs=1e-12)


def test_it_is_the_mean_over_every_choice_of_k_samples():
    passes = [True, False, True, False, False]
    choices = list(itertools.combinations(passes, 3))
    assert pass_at(3, samples=5, passed=2) == pytest.approx(sum(map(any, choices)) / len(choices))


def test_k_is_every_power_of_two_and_the_whole():
    cases = [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])]
    for samples, expected in cases:
        assert ks(samples) == expected, samples


def pass_of(k, *groups, threshold=1.0):
    cells = {(g, i): Mean(r, 1) for g, rewards in enumerate(groups) for i, r in enumerate(rewards)}
    return Grouped(cells, figure(k, threshold)).value


def test_a_reward_below_one_passes_when_the_threshold_says_so():  # slime counts rewards of exactly 1.0
    assert pass_of(1, [0.99, 0.2], threshold=1.0) == 0
    assert pass_of(1, [0.99, 0.2], threshold=0.9) == 0.5
    assert pass_of(1, [1.5, 0.2], threshold=1.0) == 0.5


def test_groups_of_uneven_size_are_no_error():  # slime asserts that all have the same
    assert pass_of(1, [1.0, 0.0, 0.0, 0.0], [1.0]) == (1 / 4 + 1) / 2


def test_a_prompt_with_fewer_samples_than_k_is_left_out():
    assert pass_of(2, [1.0, 0.0, 0.0], [1.0]) == pytest.approx(2 / 3)
