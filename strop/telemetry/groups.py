"""What the groups of one step say: rewards, lengths, how they ended, how stale they are."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from strop.kept import OFFSETS
from strop.sample import Group, Sample, Status, all_equal
from strop.telemetry import passes
from strop.telemetry.catalogue import checked
from strop.telemetry.metrics import Cell, Distinct, Grouped, Max, Mean, Metric, Min, Sum, reduce

PASSES = 1.0
"""The reward from which a sample passes, for `rollout/pass_at_<k>`."""


def group_metrics(groups: list[Group], step: int) -> dict[str, float]:
    """The values of `group_record`."""
    return reduce([group_record(groups, step)])


def group_record(groups: list[Group], step: int) -> Mapping[str, Metric]:
    """What one rank says of the groups, or of the parts of groups, that step `step` trains on.

    Records of several ranks merge to what one would say, also when a trajectory's samples lie on both. What
    nothing is known of, such as the largest of no rewards, is not in it.
    """
    samples = [sample for group in groups for sample in group.samples]
    return checked({**_rewards(groups, samples), **_lengths(samples), **_ends(groups), **_age(samples, step)})


def given_record(groups: list[Group]) -> Mapping[str, Metric]:
    """The same of groups that data gives: how many and how long, since nothing was drawn or rewarded. Samples
    that are scored and never trained are left out."""
    samples = [sample for group in groups for sample in group.samples if not sample.remove_sample]
    trained = float(sum(int(sample.sequence.mask.sum()) for sample in samples))
    lengths = {name: metric for name, metric in _lengths(samples).items() if name != "rollout/sampled_tokens"}
    cut = sum(sample.status is Status.TRUNCATED for sample in samples)
    return checked(
        {
            "rollout/groups": Distinct(frozenset(group.id for group in groups)),
            "rollout/truncated_share": Mean(cut, len(samples)),
            "rollout/samples": Sum(float(len(samples))),
            **lengths,
            "rollout/trained_tokens": Sum(trained),
        }
    )


def pass_record(cells: Mapping[Cell, Mean], *, samples: int) -> Mapping[str, Metric]:
    """pass@k of groups of `samples` trajectories each, for the k up to it."""
    of = {f"rollout/pass_at_{k}": Grouped(cells, passes.figure(k, PASSES)) for k in passes.ks(samples)}
    return checked(of)


def cells_of(groups: Sequence[Group]) -> dict[Cell, Mean]:
    """The reward of every trajectory that has one: the mean over its samples."""
    cells: dict[Cell, Mean] = {}
    for group in groups:
        for sample in group.samples:
            if sample.reward is not None:
                cell, mean = (group.id, sample.trajectory_id), Mean(sample.reward, 1)
                cells[cell] = cells[cell].merge(mean) if cell in cells else mean
    return cells


def mean_of(cells: Mapping[Cell, Mean]) -> Grouped:
    """The mean over trajectories, whatever group they are of."""
    return Grouped(_as_one(cells), _mean)


def _rewards(groups: list[Group], samples: list[Sample]) -> dict[str, Metric]:
    rewards = [sample.reward for sample in samples if sample.reward is not None]
    cells = cells_of(groups)
    extremes: dict[str, Metric] = (
        {"reward/min": Min(min(rewards)), "reward/max": Max(max(rewards))} if rewards else {}
    )
    scores = sorted({name for sample in samples for name in sample.scores})
    return {
        "reward/mean": mean_of(cells),
        "reward/std": Grouped(_as_one(cells), _deviation),
        **extremes,
        "reward/group_std": Grouped(cells, _deviation),
        "rollout/equal_groups_share": Grouped(cells, _is_equal),
        **_greedy(groups),
        **{f"reward/score/{name}": _score(samples, name) for name in scores},
    }


def _greedy(groups: list[Group]) -> dict[str, Metric]:
    """Of the replies that groups are compared with."""
    rewards = [group.greedy_reward for group in groups if group.greedy]
    return {"reward/greedy": Mean.of(rewards)} if rewards else {}


def _as_one(cells: Mapping[Cell, Mean]) -> dict[Cell, Mean]:
    return {(0, trajectory): mean for (_, trajectory), mean in cells.items()}


def _mean(values: Sequence[float]) -> float:
    return Mean.of(values).value


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values))


def _is_equal(values: Sequence[float]) -> float:
    return float(all_equal(np.array(values)))


def _score(samples: list[Sample], name: str) -> Mean:
    return Mean.of([sample.scores[name] for sample in samples if name in sample.scores])


def _lengths(samples: list[Sample]) -> dict[str, Metric]:
    lengths = [sample.response_length for sample in samples]
    extremes: dict[str, Metric] = (
        {
            "rollout/response_tokens_min": Min(float(min(lengths))),
            "rollout/response_tokens_max": Max(float(max(lengths))),
        }
        if lengths
        else {}
    )
    return {
        "rollout/prompt_tokens": Mean.of([sample.prompt_length for sample in samples]),
        "rollout/response_tokens": Mean.of(lengths),
        **extremes,
        "rollout/sampled_tokens": Sum(float(sum(int(s.sequence.sampled.sum()) for s in samples))),
    }


def _ends(groups: list[Group]) -> dict[str, Metric]:
    statuses = [sample.status for group in groups for sample in group.samples]
    rounds: dict[str, Metric] = (
        {"rollout/rounds": Max(float(1 + max(group.tries for group in groups)))} if groups else {}
    )
    return {
        "rollout/groups": Distinct(frozenset(group.id for group in groups)),
        "rollout/samples": Sum(float(len(statuses))),
        "rollout/removed": Sum(float(sum(s.remove_sample for group in groups for s in group.samples))),
        "rollout/truncated_share": Mean(statuses.count(Status.TRUNCATED), len(statuses)),
        "rollout/failed": Sum(float(statuses.count(Status.FAILED))),
        "rollout/aborted": Sum(float(statuses.count(Status.ABORTED))),
        **rounds,
    }


def _age(samples: list[Sample], step: int) -> dict[str, Metric]:
    sampled = [sample.sequence.sampled for sample in samples]
    age = np.concatenate(
        [step - s.sequence.versions[drawn] for s, drawn in zip(samples, sampled, strict=True)]
        + [np.zeros(0, np.int32)]
    )
    logp = np.concatenate(
        [s.sequence.behavior[drawn] for s, drawn in zip(samples, sampled, strict=True)]
        + [np.zeros(0, np.float32)]
    )
    oldest: dict[str, Metric] = {"rollout/staleness_max": Max(float(age.max()))} if age.size else {}
    return {
        "rollout/behavior_logp": Mean(math.fsum(logp), logp.size),
        "rollout/staleness": Mean(float(age.sum()), age.size),
        **oldest,
        **_kept_sets(samples),
    }


def _kept_sets(samples: list[Sample]) -> dict[str, Metric]:
    """Of samples that are trained, where tokens were drawn from a part of the vocabulary."""
    sizes = [
        np.diff(sample.extras[OFFSETS])[sample.response_tokens.mask]
        for sample in samples
        if OFFSETS in sample.extras and not sample.remove_sample
    ]
    sets = sum(int((size > 0).sum()) for size in sizes)
    return {"rollout/top_p_kept_vocab": Mean(float(sum(size.sum() for size in sizes)), sets)} if sets else {}
