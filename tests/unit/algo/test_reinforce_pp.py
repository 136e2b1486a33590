"""REINFORCE++, with and without a group baseline, as `credit` computes it."""

import numpy as np
import pytest
from small_steps import batch_of, credited, with_kl

from strop.errors import InputError

ROOT = np.sqrt(0.5)


def test_a_removed_sample_does_not_end_the_run():  # slime: "Sequence at index i is fully masked"
    for variance, scale in (("population", 1), ("bessel", np.sqrt(3 / 4))):
        batch = batch_of([1.0, 5, 0], [2, 2, 2], group_size=1, removed={1})
        found = credited(batch, advantage="returns", whiten=variance)
        assert found == pytest.approx(scale * np.array([1, 1, 0, 0, -1, -1]), abs=1e-6), variance
        assert not found[2:4].any()


def test_every_sample_of_a_trajectory_is_credited_with_its_outcome():
    batch = batch_of([1.5, 0, 0.5], [1, 1, 1], group_size=3, trajectories=[7, 8, 7])
    found = credited(batch, advantage="returns", whiten="population")
    assert found == pytest.approx([ROOT, -2 * ROOT, ROOT], abs=1e-6)


def baseline(rewards, kl, kl_coef, *, num_groups=1, trajectories=None):
    """Of samples of one token."""
    n = len(rewards)
    batch = batch_of(rewards, [1] * n, group_size=n // num_groups, trajectories=trajectories)
    keys = {"normalize_std": False, "whiten": "population", "kl_coef": kl_coef}
    return credited(with_kl(batch, kl), type="reinforce_pp_baseline", **keys)


def test_kl_is_charged_before_whitening():
    assert baseline([1, 0], [1, 0], 0.5).tolist() == pytest.approx([1, -1])
    assert not baseline([1, 0], [1, 0], 1.0).any()


def test_the_group_baseline_counts_trajectories():
    rewards, trajectories = [1, 1, 1, 0, 1, 0, 0, 0], [7, 7, 7, 8, 9, 5, 5, 5]
    found = baseline(rewards, [0] * 8, 0.0, num_groups=2, trajectories=trajectories)
    # One group alone would not tell: whitening takes any baseline of the whole step out.
    assert found == pytest.approx([1, 1, 1, -1, 1, -1, -1, -1], abs=1e-6)


def test_a_group_of_one_is_refused_by_the_algorithms_name():
    with pytest.raises(InputError, match=r"algo\.type = 'reinforce_pp_baseline' needs at least 2"):
        baseline([1], [0], 0.0)


def test_equal_rewards_give_exactly_zero_over_any_chunk():
    batch = with_kl(batch_of([0.1] * 40, [97] * 40, group_size=1), np.zeros(40 * 97))
    assert not credited(batch, advantage="returns", whiten="bessel", kl_coef=0.1).any()
