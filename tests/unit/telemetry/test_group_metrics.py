import math

import pytest

from strop.sample import Group, Prompt, Sample, Status, Tokens
from strop.telemetry.groups import group_metrics


def sample(index, reward, length, *, status=Status.COMPLETED, version=0, scores=(), trajectory=-1):
    drawn = Tokens.drawn([7] * length, [-0.5] * length, [version] * length)
    return Sample(
        index=index,
        group_id=0,
        trajectory_id=trajectory,
        sequence=Tokens.context([1, 2]) + drawn,
        prompt_length=2,
        reward=reward,
        status=status,
        scores=dict(scores),
    )


def group(*samples, tries=0):
    """Known by its first sample's index."""
    return Group(samples[0].index, Prompt(id="p", messages="hello"), list(samples), tries=tries)


MIXED = [
    group(sample(0, 0.0, 2), sample(1, 1.0, 4, status=Status.TRUNCATED, version=1)),
    group(sample(2, 1.0, 1), sample(3, 1.0, 1), tries=2),
]


def test_rewards():
    found = group_metrics(MIXED, step=1)
    assert found["reward/mean"] == 0.75
    assert (found["reward/min"], found["reward/max"]) == (0.0, 1.0)
    assert found["reward/std"] == pytest.approx(math.sqrt(3) / 4)
    assert found["reward/group_std"] == 0.25


def test_lengths():
    found = group_metrics(MIXED, step=1)
    assert found["rollout/response_tokens"] == 2.0
    assert (found["rollout/response_tokens_min"], found["rollout/response_tokens_max"]) == (1.0, 4.0)
    assert found["rollout/prompt_tokens"] == 2.0
    assert found["rollout/sampled_tokens"] == 8.0


def test_how_samples_ended():
    found = group_metrics(MIXED, step=1)
    assert found["rollout/truncated_share"] == 0.25
    assert found["rollout/equal_groups_share"] == 0.5
    assert found["rollout/rounds"] == 3.0
    assert (found["rollout/groups"], found["rollout/samples"], found["rollout/failed"]) == (2.0, 4.0, 0.0)


def test_staleness_is_per_sampled_token():
    found = group_metrics(MIXED, step=1)
    assert found["rollout/staleness"] == 0.5
    assert found["rollout/staleness_max"] == 1.0
    assert found["rollout/behavior_logp"] == -0.5


def test_failed_samples_are_counted_and_have_no_reward():
    found = group_metrics([group(sample(0, None, 0, status=Status.FAILED), sample(1, 0.5, 1))], step=0)
    assert found["rollout/failed"] == 1.0
    assert found["reward/mean"] == 0.5


def test_without_any_reward_the_mean_is_not_a_number():
    found = group_metrics([group(sample(0, None, 0, status=Status.FAILED))], step=0)
    assert math.isnan(found["reward/mean"])
    assert math.isnan(found["rollout/behavior_logp"])
    assert {"reward/min", "reward/max", "rollout/staleness_max"}.isdisjoint(found)


def test_named_scores_have_their_own_mean():
    groups = [group(sample(0, 1.0, 1, scores={"format": 1.0}), sample(1, 1.0, 1, scores={"format": 0.0}))]
    assert group_metrics(groups, step=0)["reward/score/format"] == 0.5


def test_samples_of_one_trajectory_count_as_one():
    # [1, 1, 1] and 0 are two trajectories: 0.5, not 0.75
    fanned = [sample(i, 1.0, 1, trajectory=7) for i in range(3)]
    found = group_metrics([group(*fanned, sample(3, 0.0, 1))], step=0)
    assert (found["reward/mean"], found["reward/std"], found["reward/group_std"]) == (0.5, 0.5, 0.5)


def test_a_logged_reward_is_the_weighted_one_that_is_trained_on():  # TRL#5353
    weighted = sample(0, 1.0 * 1 + 0.2 * 0.5, 1, scores={"math": 1.0, "format": 0.5})
    found = group_metrics([group(weighted)], step=0)
    assert (found["reward/mean"], found["reward/score/format"]) == (1.1, 0.5)


def test_rewards_that_differ_by_rounding_are_equal_as_they_are_for_the_advantages():
    rounded = [group(sample(0, 0.1 + 0.2, 1), sample(1, 0.3, 1)), group(sample(2, 0.0, 1), sample(3, 1.0, 1))]
    assert group_metrics(rounded, step=0)["rollout/equal_groups_share"] == 0.5
