"""Every number that a run writes: its unit, what it is, what is divided by what, how parts of it are joined.

The numbers of a step are in `metrics.jsonl`, those of an evaluation in `eval/results.jsonl`, under the last
part of their name here. A name in <…> stands for one of the user's.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from strop.telemetry.metrics import Distinct, Grouped, Last, Max, Mean, Metric, Min, Rate, Sum

Reduction = Literal["mean", "sum", "max", "min", "last", "rate", "distinct", "groups"]

KINDS: dict[Reduction, tuple[type[Metric], str]] = {
    "mean": (Mean, "numerators and denominators are added up, then divided once"),
    "sum": (Sum, "added up"),
    "max": (Max, "the largest"),
    "min": (Min, "the smallest"),
    "last": (Last, "the one reported last: all ranks agree on it"),
    "rate": (Rate, "amounts and seconds are added up, then divided once"),
    "distinct": (Distinct, "different ones are counted once"),
    "groups": (Grouped, "trajectories are put together again, then each group's figure is taken"),
}
"""The class of a reduction, and how it joins what two ranks report."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One metric."""

    name: str
    unit: str
    what: str
    reduction: Reduction
    numerator: str
    denominator: str = ""
    """Empty where nothing is divided."""

    def matches(self, name: str) -> bool:
        """Whether `name` is this metric, or one of those that its <…> stands for."""
        if "<" not in self.name:
            return name == self.name
        # What stands at the end is called as the user's own code calls it: with a slash too.
        pattern = re.sub(r"<[^>]*>", "\0", re.sub(r"<[^>]*>$", "\1", self.name))
        pattern = re.escape(pattern).replace("\0", "[^/]+").replace("\1", ".+")
        return re.fullmatch(pattern, name, re.DOTALL) is not None


def _rewards() -> tuple[Declared, ...]:
    own, groups = "rewards of the trajectories", "trajectories with a reward"
    return (
        Declared("reward/mean", "reward", "mean reward of what is trained on", "groups", own, groups),
        Declared(
            "reward/std",
            "reward",
            "standard deviation over all trajectories (population)",
            "groups",
            own,
            groups,
        ),
        Declared("reward/min", "reward", "smallest reward", "min", "rewards of the samples"),
        Declared("reward/max", "reward", "largest reward", "max", "rewards of the samples"),
        Declared(
            "reward/group_std",
            "reward",
            "standard deviation of the reward within a group (population)",
            "groups",
            "deviations of the groups",
            "groups with a reward",
        ),
        Declared(
            "reward/greedy",
            "reward",
            "mean reward of the greedy replies that groups are compared with",
            "mean",
            "rewards of the greedy replies",
            "groups",
        ),
        Declared(
            "reward/score/<name>",
            "score",
            "mean of a named score, beside the reward",
            "mean",
            "scores of that name",
            "samples that have it",
        ),
    )


def _counts() -> tuple[Declared, ...]:
    samples, tokens = "samples", "tokens"
    return (
        Declared("rollout/groups", "groups", "groups trained on", "distinct", "groups"),
        Declared("rollout/samples", samples, "samples of the groups trained on", "sum", samples),
        Declared(
            "rollout/removed",
            samples,
            "of these, taken out of the loss by remove_sample; they count in their group's baseline",
            "sum",
            samples,
        ),
        Declared(
            "rollout/prompt_tokens",
            tokens,
            "before the first response token",
            "mean",
            "prompt tokens",
            samples,
        ),
        Declared(
            "rollout/response_tokens",
            tokens,
            "of a response, tool tokens included",
            "mean",
            "response tokens",
            samples,
        ),
        Declared("rollout/response_tokens_min", tokens, "shortest response", "min", "response tokens"),
        Declared("rollout/response_tokens_max", tokens, "longest response", "max", "response tokens"),
        Declared("rollout/sampled_tokens", tokens, "that the policy made", "sum", "sampled tokens"),
        Declared(
            "rollout/truncated_share",
            "share",
            "samples that hit the maximum length",
            "mean",
            "truncated samples",
            samples,
        ),
        Declared("rollout/failed", samples, "in which user code failed", "sum", "failed samples"),
        Declared("rollout/aborted", samples, "that were aborted", "sum", "aborted samples"),
        Declared(
            "rollout/equal_groups_share",
            "share",
            "groups whose rewards are all equal: nothing to learn from",
            "groups",
            "groups with equal rewards",
            "groups with a reward",
        ),
        Declared(
            "rollout/rounds", "rounds", "it took to fill the step; 1: no group was replaced", "max", "rounds"
        ),
    )


def _age() -> tuple[Declared, ...]:
    sampled = "sampled tokens"
    return (
        Declared(
            "rollout/behavior_logp",
            "nats",
            "log-prob of a sampled token under the policy that sampled it",
            "mean",
            "log-probs",
            sampled,
        ),
        Declared(
            "rollout/staleness",
            "versions",
            "the step minus the version that sampled a token",
            "mean",
            "ages of the sampled tokens",
            sampled,
        ),
        Declared(
            "rollout/staleness_max", "versions", "largest of these", "max", "ages of the sampled tokens"
        ),
        Declared(
            "rollout/top_p_kept_vocab",
            "ids",
            "that a token was drawn from, with top-p, top-k or min-p",
            "mean",
            "sizes of the kept sets",
            "trained tokens that have one",
        ),
    )


def _filled() -> tuple[Declared, ...]:
    return (
        Declared(
            "rollout/reward_before_filter",
            "reward",
            "mean reward before groups are dropped: what the policy is worth",
            "groups",
            "rewards of the trajectories of every finished group",
            "those trajectories",
        ),
        Declared(
            "rollout/pass_at_<k>",
            "share",
            "chance that one of k samples of a prompt passes (reward ≥ 1), before groups are dropped",
            "groups",
            "pass@k of the groups",
            "groups with k rewards or more",
        ),
        Declared("rollout/groups_issued", "groups", "begun for the step", "sum", "groups"),
        Declared("rollout/groups_dropped", "groups", "not trained on", "sum", "groups"),
        Declared("rollout/dropped/<reason>", "groups", "dropped for one reason", "sum", "groups"),
        Declared("rollout/tokens", "tokens", "drawn, also for dropped groups", "sum", "sampled tokens"),
    )


def _trained() -> tuple[Declared, ...]:
    weighted, weights = "weight × value of the trained tokens", "their weights (algo.aggregation)"
    return (
        Declared("train/updates", "updates", "optimizer updates made", "sum", "updates"),
        Declared("train/skipped_updates", "updates", "left out: not finite", "sum", "updates"),
        Declared("train/tokens", "tokens", "computed, prompts included", "sum", "tokens"),
        Declared("train/lr", "1", "learning rate of the last update", "last", "learning rate"),
        Declared(
            "train/loss",
            "loss",
            "whole loss of an update",
            "mean",
            "losses, each over its whole update",
            "updates",
        ),
        Declared(
            "train/grad_norm",
            "norm",
            "gradient norm before clipping",
            "mean",
            "norms of the updates",
            "updates",
        ),
        Declared(
            "train/pg_loss",
            "loss",
            "policy-gradient part of the loss",
            "mean",
            "its sums over whole updates",
            "updates",
        ),
        Declared("train/entropy", "nats", "of the distribution at a token", "mean", weighted, weights),
        Declared("train/ppo_kl", "nats", "old − new log-prob", "mean", weighted, weights),
        Declared("train/kl_loss", "nats", "estimate of KL to the reference", "mean", weighted, weights),
        Declared("train/clip_frac_low", "share", "ratios clipped below", "mean", weighted, weights),
        Declared("train/clip_frac_high", "share", "ratios clipped above", "mean", weighted, weights),
        Declared("train/pg_clipfrac", "share", "ratios clipped", "mean", weighted, weights),
    )


def _off_policy() -> tuple[Declared, ...]:
    weighted, weights = "weight × value of the trained tokens", "their weights (algo.aggregation)"
    both = "tokens with both log-probs"
    left_out = "tokens left out as off-policy"
    return (
        Declared("train/correction_weight", "1", "off-policy weight of the loss", "mean", weighted, weights),
        Declared(
            "train/correction_clip_frac", "share", "off-policy weights clipped", "mean", weighted, weights
        ),
        Declared("train/correction_reject_frac", "share", left_out, "mean", weighted, weights),
        Declared("train/opsm_frac", "share", "tokens masked by algo.opsm_delta", "mean", weighted, weights),
        Declared(
            "train/train_rollout_logprob_abs_diff",
            "nats",
            "how far the trainer's log-prob is from the sampler's",
            "mean",
            "|old − behavior|",
            both,
        ),
        Declared(
            "train/train_rollout_logprob_abs_diff_max", "nats", "largest of these", "max", "|old − behavior|"
        ),
        Declared(
            "train/mismatch_k1",
            "nats",
            "estimate of KL(sampler ‖ trainer)",
            "mean",
            "−d with d = old − behavior",
            both,
        ),
        Declared(
            "train/mismatch_k3",
            "nats",
            "estimate of KL(sampler ‖ trainer)",
            "mean",
            "e^d − 1 − d with d = old − behavior",
            both,
        ),
        Declared(
            "train/mismatch_ess",
            "share",
            "effective sample size of the ratios w = e^(old − behavior)",
            "mean",
            "(Σw)² / Σw²",
            both,
        ),
    )


def _times() -> tuple[Declared, ...]:
    seconds = "seconds by the clock"
    return (
        Declared("time/rollout_s", "s", "to fill the step with groups", "sum", seconds),
        Declared("time/train_s", "s", "scoring and updates", "sum", seconds),
        Declared("time/sync_s", "s", "new weights into the engine", "sum", seconds),
        Declared("time/step_s", "s", "the whole step, without evaluation and checkpoint", "sum", seconds),
        Declared(
            "rollout/tokens_per_s", "tokens/s", "drawn", "rate", "tokens drawn", "seconds of the rollout"
        ),
        Declared(
            "train/tokens_per_s",
            "tokens/s",
            "computed by the trainer",
            "rate",
            "train/tokens",
            "time/train_s",
        ),
    )


def _evals() -> tuple[Declared, ...]:
    known = "trajectories with a reward"
    finished = "samples that did not fail"
    return (
        Declared("eval/<name>/mean", "reward", "mean reward", "mean", "rewards", known),
        Declared(
            "eval/<name>/stderr",
            "reward",
            "standard error of the mean; prompts are the independent draws",
            "last",
            "deviation of the prompts' means",
            "root of the prompts",
        ),
        Declared(
            "eval/<name>/low", "reward", "lower end of the 95 % interval of the mean", "last", "see interval"
        ),
        Declared("eval/<name>/high", "reward", "its upper end", "last", "see interval"),
        Declared("eval/<name>/n", "prompts", "with a rewarded trajectory", "distinct", "prompts"),
        Declared("eval/<name>/prompts", "prompts", "played", "distinct", "prompts"),
        Declared("eval/<name>/samples", "trajectories", "played", "distinct", "trajectories"),
        Declared(
            "eval/<name>/failed",
            "trajectories",
            "without a reward; not counted as 0",
            "distinct",
            "trajectories",
        ),
        Declared(
            "eval/<name>/pass_at_<k>",
            "share",
            "chance that one of k samples of a prompt passes (reward ≥ pass_threshold)",
            "groups",
            "pass@k of the prompts",
            "prompts with k rewards or more",
        ),
        Declared(
            "eval/<name>/pass_left_out_<k>",
            "prompts",
            "with fewer rewards than k, where there are any",
            "distinct",
            "prompts",
        ),
        Declared(
            "eval/<name>/truncated_share",
            "share",
            "samples that hit the maximum length",
            "mean",
            "truncated samples",
            finished,
        ),
        Declared(
            "eval/<name>/response_tokens", "tokens", "of a response", "mean", "response tokens", finished
        ),
        Declared("eval/<name>/time/eval_s", "s", "to play and reward the set", "sum", "seconds by the clock"),
    )


@cache
def catalogue() -> tuple[Declared, ...]:
    """All of them, in the order of the data flow."""
    return (*_rewards(), *_counts(), *_filled(), *_age(), *_trained(), *_off_policy(), *_times(), *_evals())


def declared(name: str) -> Declared | None:
    """What is said of a metric; None for a name that nobody declared."""
    return next((metric for metric in catalogue() if metric.matches(name)), None)


def checked(record: Mapping[str, Metric]) -> Mapping[str, Metric]:
    """The same record, every name declared and reduced as it is declared."""
    for name, metric in record.items():
        found = declared(name)
        assert found is not None, f"metric {name!r} is not in the catalogue"
        expected = KINDS[found.reduction][0]
        assert isinstance(metric, expected), f"metric {name!r}: {metric} is no {expected.__name__}"
    return record
