"""REINFORCE++, with and without a group baseline."""

import numpy as np
import pytest

from strop.algo.global_advantages import reinforce_pp, reinforce_pp_baseline
from strop.algo.spans import Spans
from strop.errors import InputError

ROOT = np.sqrt(0.5)


def test_a_removed_sample_does_not_end_the_run():  # slime: "Sequence at index i is fully masked"
    white = reinforce_pp(
        np.array([1.0, 5, 0]),
        np.zeros(6),
        mask_N=np.array([1, 1, 0, 0, 1, 1], bool),
        spans=Spans.of_samples(np.array([0, 2, 4, 6])),
        kl_coef=0.0,
        discount=1.0,
        variance="population",
    )
    assert white.values_N == pytest.approx([1, 1, 0, 0, -1, -1], abs=1e-6)


def test_every_sample_of_a_trajectory_is_credited_with_its_outcome():
    offsets = np.array([0, 1, 2, 3])
    white = reinforce_pp(
        np.array([1.0, 0, 1]),
        np.zeros(3),
        mask_N=np.ones(3, bool),
        spans=Spans.of_trajectories(offsets, np.array([7, 8, 7])),
        kl_coef=0.0,
        discount=1.0,
        variance="population",
    )
    assert white.values_N == pytest.approx([ROOT, -2 * ROOT, ROOT], abs=1e-6)


def baseline(rewards, kl_N, groups, trajectories, kl_coef):
    return reinforce_pp_baseline(
        np.array(rewards, np.float64),
        np.array(kl_N, np.float64),
        groups=np.array(groups),
        trajectories=np.array(trajectories),
        mask_N=np.ones(len(kl_N), bool),
        offsets=np.arange(len(kl_N) + 1),
        kl_coef=kl_coef,
        variance="population",
    ).values_N


def test_kl_is_charged_before_whitening():
    found = baseline([1, 0], [1, 0], [0, 0], [0, 1], 0.5)
    assert found.tolist() == pytest.approx([1, -1])
    assert not baseline([1, 0], [1, 0], [0, 0], [0, 1], 1.0).any()


def test_the_group_baseline_counts_trajectories():
    found = baseline([1, 1, 1, 0], [0] * 4, [0] * 4, [7, 7, 7, 8], 0.0)
    expected = np.array([0.5, 0.5, 0.5, -0.5]) - 0.25
    assert found == pytest.approx(expected / np.sqrt(0.1875), abs=1e-6)


def test_a_group_of_one_is_refused_by_the_algorithms_name():
    with pytest.raises(InputError, match=r"algo\.type = 'reinforce_pp_baseline' needs at least 2"):
        baseline([1], [0], [4], [4], 0.0)


def test_equal_rewards_give_exactly_zero_over_any_chunk():
    lengths = np.full(40, 97)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    white = reinforce_pp(
        np.full(40, 0.1),
        np.zeros(offsets[-1]),
        mask_N=np.ones(offsets[-1], bool),
        spans=Spans.of_samples(offsets),
        kl_coef=0.1,
        discount=1.0,
        variance="bessel",
    )
    assert not white.values_N.any()
