"""Every keep function keeps the seam's promises. A new one is a line in `KEEPS`."""

import copy
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from cases import case

from strop.errors import PluginError
from strop.rollout.group import new_group
from strop.rollout.keep import Drop, judge, kind_of, open_keep, reward_std
from strop.sample import Prompt, Status, Tokens

HERE = Path(__file__)


def not_too_easy(group):
    """As a user writes one: with a reason."""
    return Drop("too easy") if min(group.rewards) == 1 else True


def short(group):
    """As a user writes one: yes or no."""
    return all(sample.response_length < 4 for sample in group.samples)


def spread(group):
    """As a user writes one: numpy's yes or no."""
    return np.std(group.rewards) > 0


KEEPS = {
    "nothing": None,
    "reward_std": "reward_std",
    "reward_std_or_fill": "reward_std_or_fill",
    "by path, with a reason": f"{HERE}:not_too_easy",
    "by path, yes or no": f"{HERE}:short",
    "by path, numpy's yes or no": f"{HERE}:spread",
    "by module": "strop.rollout.keep:reward_std",
}
REWARDS = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.1] * 8, [-3.0, 2.0], [1e9, 1e9 + 1], [1.0], [1e-30, 0.0]]


def opened():
    """(name, keep function) of each."""
    return [(name, open_keep(spec)) for name, spec in KEEPS.items()]


def group_of(rewards):
    group = new_group(0, Prompt(id="p", messages="?"), first_index=0, size=len(rewards))
    for i, (sample, reward) in enumerate(zip(group.samples, rewards, strict=True)):
        sample.sequence = Tokens.context([1]) + Tokens.drawn([2] * (i + 1), [-1.0] * (i + 1), [0] * (i + 1))
        sample.prompt_length, sample.status, sample.reward = 1, Status.COMPLETED, reward
    return group


def test_a_group_is_kept_or_dropped_with_a_reason():
    for (name, keep), rewards in product(opened(), REWARDS):
        with case(name, rewards):
            reason = judge(group_of(rewards), keep)
            assert reason is None or reason.reason
            assert reason is None or not reason.reason.startswith("failed")


def test_the_verdict_is_of_the_group_alone():
    for (name, keep), rewards in product(opened(), REWARDS):
        with case(name, rewards):
            group = group_of(rewards)
            before = copy.deepcopy(group)
            assert judge(group, keep) == judge(group_of(rewards), keep)
            assert group == before


def test_a_failed_sample_drops_the_group_before_anyone_is_asked():
    for name, keep in opened():
        group = group_of([0.0, 1.0])
        group.samples[1].fail(RuntimeError("environment x: gone"))
        assert judge(group, keep) == Drop("failed: environment x: gone"), name


def test_an_aborted_sample_drops_the_group_by_name():
    for name, keep in opened():
        group = group_of([0.0, 1.0])
        group.samples[1].status, group.samples[1].reward = Status.ABORTED, None
        assert judge(group, keep) == Drop("aborted"), name


def test_a_reward_that_is_no_number_drops_the_group():
    for (name, keep), reward in product(opened(), [float("nan"), float("inf")]):
        verdict = judge(group_of([0.0, reward]), keep)
        assert verdict == Drop("failed: a reward is not finite"), (name, reward)


def test_rewards_that_differ_are_worth_training_on():
    cases = [
        ([0.0, 1.0], True),
        ([0.0, 0.0], Drop("all rewards equal: 0")),
        ([0.1] * 8, Drop("all rewards equal: 0.1")),
        ([0.1] * 7, Drop("all rewards equal: 0.1")),  # whose mean is not 0.1
        ([0.3, 0.1 + 0.2], Drop("all rewards equal: 0.3")),
        ([1.0], Drop("all rewards equal: 1")),
        ([0.0, 1e-6], True),
    ]
    for rewards, verdict in cases:
        assert reward_std(group_of(rewards)) == verdict, rewards


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("reward_sdt", "rollout.keep = 'reward_sdt': no such name; did you mean 'reward_std'?"),
        (f"{HERE}:not_to_easy", "did you mean 'not_too_easy'?"),
        (f"{HERE}:HERE", "expected a function or a class, got"),
    ],
)
def test_a_wrong_name_is_one_line(spec, message):
    with pytest.raises(PluginError) as caught:
        open_keep(spec)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_reason_of_any_text_is_a_safe_name_of_a_metric():
    cases = [
        ("all rewards equal: 0.1", "all_rewards_equal"),
        ("failed: reward x: no answer", "failed"),
        ("Too Easy/../\u00e9t\u00e9 (0.73)\n", "too_easy_t"),
        ("0.5", "other"),
        ("", "other"),
        ("long " * 40, "long_long_long_long_long_long_long_long"),
    ]
    for reason, name in cases:
        assert kind_of(reason) == name, reason


def test_the_filter_sees_the_reward_as_the_reward_function_gave_it():
    group = group_of([0.0, 1.0])
    for sample in group.samples:
        sample.scores = {"shaped": 0.5}
    assert reward_std(group) is True


def test_a_filter_may_compare_one_score_of_a_reward_that_is_shaped_by_length():  # NeMo#2478
    def right_or_wrong(group):
        return len({sample.scores["exact"] for sample in group.samples}) > 1

    group = group_of([1.0 - 0.1 * length for length in range(4)])
    for sample in group.samples:
        sample.scores = {"exact": 1.0, "length": float(sample.response_length)}
    assert judge(group, reward_std) is None
    assert judge(group, right_or_wrong) == Drop("rollout.keep")
