"""Every number that a run writes: its unit, what it is, what is divided by what, how parts of it are joined.

The numbers of a step are in `metrics.jsonl`, those of an evaluation in `eval/results.jsonl`, under the last
part of their name here. A name in <…> stands for one of the user's.
"""

from collections.abc import Mapping
from functools import cache

from strop.telemetry.declared import KINDS, Declared
from strop.telemetry.metrics import Metric
from strop.telemetry.of_given import of_given
from strop.telemetry.of_training import off_policy, trained, valued


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
        Declared("rollout/trained_tokens", tokens, "that given rows train", "sum", "trained tokens"),
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


def _training() -> tuple[Declared, ...]:
    return (*trained(), *valued(), *off_policy())


@cache
def catalogue() -> tuple[Declared, ...]:
    """All of them, in the order of the data flow."""
    return (*_rewards(), *_counts(), *_filled(), *_age(), *_training(), *of_given(), *_times(), *_evals())


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
