"""What the groups of one step say: rewards, lengths, how they ended, how stale they are."""

import numpy as np
from numpy.typing import NDArray

from strop.sample import Group, Sample, Status

MEANINGS = {
    "reward/mean": "mean reward over the samples",
    "reward/std": "standard deviation of the reward over all samples (population)",
    "reward/min": "smallest reward",
    "reward/max": "largest reward",
    "reward/group_std": "mean over groups of the reward's standard deviation in the group (population)",
    "rollout/groups": "groups trained on",
    "rollout/samples": "samples trained on",
    "rollout/prompt_tokens": "mean tokens before the first response token",
    "rollout/response_tokens": "mean response tokens, tool tokens included",
    "rollout/response_tokens_min": "shortest response",
    "rollout/response_tokens_max": "longest response",
    "rollout/sampled_tokens": "tokens that the policy made, in total",
    "rollout/truncated_share": "share of samples that hit the maximum length",
    "rollout/failed": "samples in which user code failed",
    "rollout/aborted": "samples that were aborted",
    "rollout/equal_groups_share": "share of groups whose rewards are all equal: nothing to learn from",
    "rollout/rounds": "rounds it took to fill the step; 1 when no group was replaced",
    "rollout/behavior_logp": "mean log-prob of the sampled tokens under the policy that sampled them",
    "rollout/staleness": "mean over sampled tokens of the step minus the version that sampled it",
    "rollout/staleness_max": "largest of these",
}
"""Every name that `group_metrics` gives, beside `reward/score/<name>`: means of named scores."""


def group_metrics(groups: list[Group], step: int) -> dict[str, float]:
    """The metrics in `MEANINGS` of the groups that step `step` trains on; at least one sample.

    Rewards are of the samples that have one; NaN where none has.
    """
    samples = [sample for group in groups for sample in group.samples]
    return {**_rewards(groups, samples), **_lengths(samples), **_ends(groups, samples), **_age(samples, step)}


def _rewards(groups: list[Group], samples: list[Sample]) -> dict[str, float]:
    rewards = np.array([sample.reward for sample in samples if sample.reward is not None])
    spreads = np.array([np.std(group.rewards) for group in groups if group.rewards])
    scores = sorted({name for sample in samples for name in sample.scores})
    return {
        "reward/mean": _mean(rewards),
        "reward/std": float(rewards.std()) if rewards.size else np.nan,
        "reward/min": float(rewards.min(initial=np.inf)) if rewards.size else np.nan,
        "reward/max": float(rewards.max(initial=-np.inf)) if rewards.size else np.nan,
        "reward/group_std": _mean(spreads),
        **{f"reward/score/{name}": _mean(_scores(samples, name)) for name in scores},
    }


def _lengths(samples: list[Sample]) -> dict[str, float]:
    lengths = np.array([sample.response_length for sample in samples])
    return {
        "rollout/prompt_tokens": _mean(np.array([sample.prompt_length for sample in samples])),
        "rollout/response_tokens": _mean(lengths),
        "rollout/response_tokens_min": float(lengths.min()),
        "rollout/response_tokens_max": float(lengths.max()),
        "rollout/sampled_tokens": float(sum(int(sample.sequence.sampled.sum()) for sample in samples)),
    }


def _ends(groups: list[Group], samples: list[Sample]) -> dict[str, float]:
    statuses = [sample.status for sample in samples]
    equal = [group.has_equal_rewards for group in groups]
    return {
        "rollout/groups": float(len(groups)),
        "rollout/samples": float(len(samples)),
        "rollout/truncated_share": statuses.count(Status.TRUNCATED) / len(statuses),
        "rollout/failed": float(statuses.count(Status.FAILED)),
        "rollout/aborted": float(statuses.count(Status.ABORTED)),
        "rollout/equal_groups_share": sum(equal) / len(equal),
        "rollout/rounds": float(1 + max(group.tries for group in groups)),
    }


def _age(samples: list[Sample], step: int) -> dict[str, float]:
    sampled = [sample.sequence.sampled for sample in samples]
    ages = [step - s.sequence.versions[drawn] for s, drawn in zip(samples, sampled, strict=True)]
    logps = [s.sequence.behavior[drawn] for s, drawn in zip(samples, sampled, strict=True)]
    age = np.concatenate(ages)
    return {
        "rollout/behavior_logp": _mean(np.concatenate(logps).astype(np.float64)),
        "rollout/staleness": _mean(age),
        "rollout/staleness_max": float(age.max()) if age.size else np.nan,
    }


def _scores(samples: list[Sample], name: str) -> NDArray[np.float64]:
    return np.array([sample.scores[name] for sample in samples if name in sample.scores])


def _mean(values: NDArray[np.generic]) -> float:
    return float(np.mean(values)) if values.size else np.nan  # type: ignore[arg-type]
