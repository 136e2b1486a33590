"""Metric values that know how they are reduced, so that no average is ever averaged.

A rank, a step or a worker reports sums and counts; `reduce` merges them once and only then divides. Names
are `station/noun[_unit]`, e.g. `rollout/response_tokens`, `train/tokens_per_s`.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

# What follows `reward/score/` is a name that the user gave: any text.
_NAME = re.compile(r"[a-z][a-z0-9_]*(/[a-z0-9_.-]+)+|reward/score/.*", re.DOTALL)
_TIMING = re.compile(r"(time|perf)/.*|(?!reward/).*(_s|_per_s|_gib)")


@dataclass(frozen=True, slots=True)
class Mean:
    """sum / count. A count may be a fraction: see `of`."""

    sum: float
    count: float

    @classmethod
    def of(cls, values: Sequence[float], weights: Sequence[float] | None = None) -> "Mean":
        """The weighted mean of `values`.

        A mean per trajectory of something measured per token weighs each token by 1 / (tokens of its whole
        trajectory): then the trajectory may be split over samples, batches and ranks in any way.
        """
        if weights is None:
            return cls(math.fsum(values), len(values))
        total = math.fsum(value * weight for value, weight in zip(values, weights, strict=True))
        return cls(total, math.fsum(weights))

    def merge(self, other: "Mean") -> "Mean":
        return Mean(self.sum + other.sum, self.count + other.count)

    @property
    def value(self) -> float:
        return self.sum / self.count if self.count else math.nan


@dataclass(frozen=True, slots=True)
class Sum:
    """Added up."""

    value: float

    def merge(self, other: "Sum") -> "Sum":
        return Sum(self.value + other.value)


@dataclass(frozen=True, slots=True)
class Max:
    """The largest."""

    value: float

    def merge(self, other: "Max") -> "Max":
        return Max(max(self.value, other.value))


@dataclass(frozen=True, slots=True)
class Min:
    """The smallest."""

    value: float

    def merge(self, other: "Min") -> "Min":
        return Min(min(self.value, other.value))


@dataclass(frozen=True, slots=True)
class Last:
    """The one reported last: for what all ranks agree on, such as a learning rate."""

    value: float

    def merge(self, other: "Last") -> "Last":
        return other


@dataclass(frozen=True, slots=True)
class Rate:
    """amount / seconds of one clock, over one interval after another.

    Ranks that work side by side share their seconds: they report a `Sum`, and whoever holds the clock
    makes the rate.
    """

    amount: float
    seconds: float

    def merge(self, other: "Rate") -> "Rate":
        return Rate(self.amount + other.amount, self.seconds + other.seconds)

    @property
    def value(self) -> float:
        return self.amount / self.seconds if self.seconds else math.nan


@dataclass(frozen=True, slots=True)
class Distinct:
    """How many different things were seen: a group whose samples lie on two ranks counts once."""

    seen: frozenset[Hashable]

    def merge(self, other: "Distinct") -> "Distinct":
        return Distinct(self.seen | other.seen)

    @property
    def value(self) -> float:
        return float(len(self.seen))


Cell = tuple[int, int]
"""(group, trajectory)."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """The mean over groups of a figure that needs the whole group, such as a deviation or pass@k.

    A rank reports what it holds of each trajectory; the figure is taken when all of it is together.
    """

    cells: Mapping[Cell, Mean]
    """A trajectory's value is the mean over its samples."""
    figure: Callable[[Sequence[float]], float | None]
    """From a group's trajectories, in order, to its figure; None leaves the group out."""

    def merge(self, other: "Grouped") -> "Grouped":
        cells = dict(self.cells)
        for cell, mean in other.cells.items():
            cells[cell] = cells[cell].merge(mean) if cell in cells else mean
        return Grouped(cells, self.figure)

    @property
    def value(self) -> float:
        groups: dict[int, list[float]] = defaultdict(list)
        for group, trajectory in sorted(self.cells):
            groups[group].append(self.cells[group, trajectory].value)
        figures = [self.figure(values) for values in groups.values()]
        return Mean.of([figure for figure in figures if figure is not None]).value


Metric = Mean | Sum | Max | Min | Last | Rate | Distinct | Grouped


def merge(records: Iterable[Mapping[str, Metric]]) -> dict[str, Metric]:
    """One record out of many, still mergeable. A name may be missing in some of them.

    Raises ValueError for a name that is not `station/noun`, TypeError for one that is reduced in two ways.
    """
    merged: dict[str, Metric] = {}
    for record in records:
        for name, metric in record.items():
            merged[name] = _joined(name, merged[name], metric) if name in merged else _named(name, metric)
    return merged


def reduce(records: Iterable[Mapping[str, Metric]]) -> dict[str, float]:
    """The values of `merge`. A mean of nothing and a rate over no time are NaN, which logs write as null."""
    return {name: metric.value for name, metric in merge(records).items()}


def is_timing(name: str) -> bool:
    """Whether a metric tells of time, speed or memory, which differ between two equal runs:
    `time/…`, `perf/…`, `…_s`, `…_per_s`, `…_gib`. What a reward says is none, whatever it is called."""
    return _TIMING.fullmatch(name) is not None


def _named(name: str, metric: Metric) -> Metric:
    if not _NAME.fullmatch(name):
        raise ValueError(f"metric {name!r}: expected station/noun, e.g. rollout/response_tokens")
    return metric


def _joined(name: str, a: Metric, b: Metric) -> Metric:
    if type(a) is not type(b):
        raise TypeError(
            f"metric {name!r}: is {type(a).__name__} in one record and {type(b).__name__} in another"
        )
    return a.merge(b)  # type: ignore[arg-type]  # both are of one kind
