"""`Declared`: what is said of a metric beforehand, and how its parts are joined."""

import re
from dataclasses import dataclass
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
