"""The numbers of a step and of a run: one record a step, and the totals that a checkpoint carries on."""

import resource
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from strop.rollout.rollouts import Report
from strop.sample import Group
from strop.telemetry.groups import group_metrics


def step_record(
    step: int, groups: list[Group], report: Report, train: dict[str, float], split: dict[str, float]
) -> dict[str, Any]:
    """One object of `metrics.jsonl`. Names that end in `_s` are times and speeds."""
    train_s = split.get("train", 0.0)
    return {
        "step": step,
        "version": step,
        **group_metrics(groups, step),
        "rollout/reward_before_filter": float(np.mean(report.rewards)) if report.rewards else None,
        "rollout/groups_issued": report.issued,
        "rollout/groups_dropped": sum(report.dropped.values()),
        **_dropped(report),
        "rollout/tokens": report.num_tokens,
        **train,
        "time/rollout_s": report.seconds,
        **{f"time/{name}_s": seconds for name, seconds in split.items()},
        "rollout/tokens_per_s": report.num_tokens / report.seconds if report.seconds else None,
        "train/tokens_per_s": train["train/tokens"] / train_s if train_s else None,
    }


def _dropped(report: Report) -> dict[str, int]:
    """By kind: the text before a colon. The ledger has the whole reasons."""
    kinds: dict[str, int] = {}
    for reason, n in sorted(report.dropped.items()):
        name = "rollout/dropped/" + reason.split(":")[0].replace(" ", "_")
        kinds[name] = kinds.get(name, 0) + n
    return kinds


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
        self.rollout_tokens += record["rollout/tokens"]
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


def peak_rss_gib() -> float:
    """Largest resident memory of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30
