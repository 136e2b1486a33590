"""Group-relative advantages."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strop.algo.advantages import greedy_advantages, group_advantages, leave_one_out_advantages
from strop.errors import InputError
from strop.sample import all_equal

NAN = float("nan")


def credit(rewards, groups, trajectories=None, normalize_std=True):
    return group_advantages(
        np.array(rewards, np.float64),
        groups=np.array(groups, np.int64),
        trajectories=np.arange(len(rewards)) if trajectories is None else np.array(trajectories, np.int64),
        normalize_std=normalize_std,
    )


def test_baseline_counts_trajectories_not_their_samples():
    advantages = credit([1, 1, 1, 0], [0] * 4, trajectories=[7, 7, 7, 8], normalize_std=False)
    assert advantages.tolist() == [0.5, 0.5, 0.5, -0.5]


def test_samples_of_one_trajectory_share_its_mean_reward():
    advantages = credit([1, 0, 0, 0], [0] * 4, trajectories=[7, 7, 8, 9], normalize_std=False)
    assert advantages == pytest.approx([1 / 3, 1 / 3, -1 / 6, -1 / 6])


@pytest.mark.parametrize("n", [8, 7])
@pytest.mark.parametrize("normalize_std", [True, False])
def test_eight_rewards_of_a_tenth_give_exactly_zero(normalize_std, n):  # slime#1674
    # Eight round as torch adds them up, seven as numpy does.
    assert (float(np.std([0.1] * n)) > 0) == (n == 7)
    assert credit([0.1] * n, [0] * n, normalize_std=normalize_std).tolist() == [0.0] * n


def test_equal_rewards_give_exactly_zero():
    for n, value in product((2, 3, 7, 100), (0.1, 0.3, -0.9, 1.7, 1e-12, 1e12)):
        assert not credit([value] * n, [0] * n).any(), (n, value)


def test_rewards_that_differ_by_rounding_are_equal():
    assert not credit([0.1 + 0.2, 0.3, float(np.float32(0.3))], [0, 0, 0]).any()


def test_small_but_real_differences_are_kept():
    assert not all_equal(np.array([1.0, 1.00001]))
    assert credit([1e-3, 2e-3], [0, 0]) == pytest.approx([-0.7061078, 0.7061078], abs=1e-6)


@pytest.mark.parametrize("normalize_std", [True, False])
def test_group_of_one_trajectory_is_refused(normalize_std):  # OpenRLHF#1250
    with pytest.raises(InputError) as caught:
        credit([1, 0, 1], [4, 4, 5], normalize_std=normalize_std)
    assert str(caught.value) == (
        "group 5: 1 trajectory, so nothing to compare it with; "
        "algo.type = 'grpo' needs at least 2: raise rollout.samples_per_prompt"
    )


def test_two_samples_of_one_trajectory_are_still_one():
    with pytest.raises(InputError, match="1 trajectory"):
        credit([1, 0], [4, 4], trajectories=[3, 3])


def test_interleaved_groups_do_not_mix():  # RLinf#335
    rewards, groups = [1, 10, 0, 20], [0, 1, 0, 1]
    assert credit(rewards, groups, normalize_std=False).tolist() == [0.5, -5, -0.5, 5]


def test_uneven_groups_that_total_a_rectangle_do_not_mix():
    rewards = [1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0]
    groups = [0] * 4 + [1] * 3 + [2] * 5
    advantages = credit(rewards, groups, normalize_std=False)
    assert advantages == pytest.approx([0] * 4 + [0] * 3 + [0.2] * 4 + [-0.8])


def test_a_failed_member_is_not_counted_and_gets_nothing():
    assert credit([1, NAN, 0], [0, 0, 0], normalize_std=False).tolist() == [0.5, 0, -0.5]
    assert credit([1, NAN, 0, 0], [0] * 4, [7, 7, 8, 9], normalize_std=False) == pytest.approx(
        [2 / 3, 0, -1 / 3, -1 / 3]
    )


@pytest.mark.parametrize("rewards", [[1, NAN, NAN], [NAN, NAN, NAN]])
def test_a_group_of_which_failures_leave_one_or_none_gives_zero(rewards):
    assert credit(rewards, [0, 0, 0]).tolist() == [0, 0, 0]


def test_an_absent_member_is_not_counted():
    assert credit([1, 0, 0, 1, 0], [0, 0, 0, 1, 1], normalize_std=False) == pytest.approx(
        [2 / 3, -1 / 3, -1 / 3, 0.5, -0.5]
    )


def test_an_advantage_of_one_sample_is_changed_alone():  # NeMo#2787
    advantages = credit([1, 0, 1, 0], [0] * 4, normalize_std=False)
    advantages[0] -= 1
    assert advantages.tolist() == [-0.5, -0.5, 0.5, -0.5]


def left_out(rewards, trajectories=None, groups=None):
    n = len(rewards)
    return leave_one_out_advantages(
        np.array(rewards, np.float64),
        groups=np.zeros(n, np.int64) if groups is None else np.array(groups),
        trajectories=np.arange(n) if trajectories is None else np.array(trajectories),
    )


def test_leave_one_out_compares_with_the_mean_of_the_others():
    rewards = [3.0, -1, 0.5, 7]
    others = [np.mean(rewards[:i] + rewards[i + 1 :]) for i in range(4)]
    assert left_out(rewards) == pytest.approx(np.array(rewards) - others)


def test_leave_one_out_leaves_a_whole_trajectory_out():
    assert left_out([1, 1, 1, 0], [7, 7, 7, 8]).tolist() == [1, 1, 1, -1]


def test_leave_one_out_of_equal_rewards_gives_exactly_zero():
    assert not left_out([0.1] * 7 + [0.3] * 3, groups=[0] * 7 + [1] * 3).any()


def test_leave_one_out_has_nobody_to_compare_with_when_the_others_failed():
    assert left_out([1, NAN, NAN]).tolist() == [0, 0, 0]


def test_leave_one_out_of_one_is_refused():
    with pytest.raises(InputError, match=r"^group 3: 1 trajectory.*algo\.type = 'rloo' needs at least 2"):
        left_out([1], groups=[3])


def test_greedy_baseline_is_that_of_the_samples_prompt():
    advantages = greedy_advantages(
        np.array([1, 0, 1, NAN, 0]),
        groups=np.array([4, 5, 4, 4, 6]),
        trajectories=np.array([0, 1, 0, 2, 3]),
        greedy={4: 0.75, 5: 0.5, 6: 0.0},
    )
    assert advantages.tolist() == [0.25, -0.5, 0.25, 0, 0]


def test_a_group_without_a_greedy_rollout_is_named():
    with pytest.raises(InputError) as caught:
        greedy_advantages(np.zeros(2), groups=np.array([4, 5]), trajectories=np.arange(2), greedy={4: 1.0})
    assert str(caught.value) == (
        "group 5: no reward of a greedy rollout, with which algo.type = 'remax' compares"
    )


def test_no_samples_have_no_advantages():
    assert credit([], []).shape == (0,)


groups_of_rewards = st.lists(
    st.lists(st.floats(-10, 10, width=32), min_size=2, max_size=6), min_size=1, max_size=5
)


@given(groups=groups_of_rewards, seed=st.integers(0, 9), normalize_std=st.booleans())
def test_advantages_do_not_depend_on_the_order_of_samples(groups, seed, normalize_std):
    rewards = np.concatenate(groups)
    ids = np.repeat(np.arange(len(groups)), [len(g) for g in groups])
    order = np.random.default_rng(seed).permutation(len(rewards))
    advantages = credit(rewards, ids, normalize_std=normalize_std)
    moved = credit(rewards[order], ids[order], trajectories=order, normalize_std=normalize_std)
    assert moved.tolist() == advantages[order].tolist()


@given(groups=groups_of_rewards, normalize_std=st.booleans())
def test_advantages_of_each_group_sum_to_zero(groups, normalize_std):
    for rewards in groups:
        advantages = credit(rewards, [0] * len(rewards), normalize_std=normalize_std)
        assert np.isfinite(advantages).all()
        assert float(advantages.sum()) == pytest.approx(0, abs=1e-6)


@given(rewards=st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=2, max_size=8), shift=st.integers(-9, 9))
def test_shifting_all_rewards_changes_nothing(rewards, shift):
    n = len(rewards)
    shifted = credit(np.array(rewards) + shift, [0] * n)
    assert shifted == pytest.approx(credit(rewards, [0] * n), abs=1e-9)
