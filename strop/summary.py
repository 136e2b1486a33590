"""The numbers of a step and of a run: one record a step, and the totals that a checkpoint carries on."""

import math
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from strop.rollout.keep import kind_of
from strop.rollout.report import Report
from strop.sample import Group
from strop.telemetry.catalogue import checked
from strop.telemetry.groups import given_record, group_record, mean_of, pass_record
from strop.telemetry.metrics import Metric, Rate, Sum, reduce


def step_record(
    step: int, groups: list[Group], report: Report, train: dict[str, float], split: dict[str, float]
) -> dict[str, Any]:
    """One object of `metrics.jsonl`; what is not finite is None. See `telemetry/catalogue.py`."""
    if report.is_given:
        told = [given_record(groups), checked(_times(report, train, split))]
    else:
        trajectories = max(len({s.trajectory_id for s in group.samples}) for group in groups)
        own = checked({**_filling(report), **_times(report, train, split)})
        told = [group_record(groups, step), own, pass_record(report.cells, samples=trajectories)]
    known = {**reduce(told), **train}
    finite = {name: value if math.isfinite(value) else None for name, value in known.items()}
    return {"step": step, "version": step, **finite}


def _filling(report: Report) -> dict[str, Metric]:
    return {
        "rollout/reward_before_filter": mean_of(report.cells),
        "rollout/groups_issued": Sum(report.issued),
        "rollout/groups_dropped": Sum(sum(report.dropped.values())),
        **_dropped(report),
        "rollout/tokens": Sum(report.num_tokens),
    }


def _dropped(report: Report) -> dict[str, Metric]:
    """By kind; the ledger has the whole reasons."""
    kinds: Counter[str] = Counter()
    for reason, n in sorted(report.dropped.items()):
        kinds[f"rollout/dropped/{kind_of(reason)}"] += n
    return {name: Sum(n) for name, n in kinds.items()}


def _times(report: Report, train: dict[str, float], split: dict[str, float]) -> dict[str, Metric]:
    drawn: dict[str, Metric] = {"rollout/tokens_per_s": Rate(report.num_tokens, report.seconds)}
    return {
        "time/rollout_s": Sum(report.seconds),
        **{f"time/{name}_s": Sum(seconds) for name, seconds in split.items()},
        **({} if report.is_given else drawn),
        "train/tokens_per_s": Rate(train["train/tokens"], split.get("train", 0.0)),
    }


@dataclass(slots=True)
class Totals:
    """Over all steps of a run, also across resumes."""

    wall_s: float = 0.0
    rollout_tokens: float = 0.0
    rollout_s: float = 0.0
    train_tokens: float = 0.0
    train_s: float = 0.0
    evals: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Data set → `start` and `end`."""

    def add(self, record: dict[str, Any]) -> None:
        """Count a step."""
        self.rollout_tokens += record.get("rollout/tokens", 0.0)
        self.rollout_s += record["time/rollout_s"]
        self.train_tokens += record["train/tokens"]
        self.train_s += record["time/train_s"]

    @property
    def rollout_tokens_per_s(self) -> float | None:
        return self.rollout_tokens / self.rollout_s if self.rollout_s else None

    @property
    def train_tokens_per_s(self) -> float | None:
        return self.train_tokens / self.train_s if self.train_s else None

    def as_json(self) -> dict[str, Any]:
        """For a checkpoint."""
        return asdict(self)
