"""How fast a run learns: its training reward by step, smoothed, and the steps until it reaches a level."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

WINDOW = 5
"""Steps of whose training rewards the mean is taken: the step itself and those before it."""
_REWARD = "rollout/reward_before_filter"
"""What the policy earned. `reward/mean` is of the groups that are trained on; where groups without contrast
are dropped, as in DAPO, it stays away from both ends however good the policy is."""


class Point(NamedTuple):
    """A place on a curve."""

    steps: int
    """Completed steps, from 1."""
    value: float


def learning_curve(records: Iterable[Mapping[str, Any]]) -> list[Point]:
    """The mean training reward of the last `WINDOW` steps after each step, of fewer at the start.

    `records` are those of `metrics.jsonl`. Steps without a reward are passed over; given rows have none.
    """
    recent: deque[float] = deque(maxlen=WINDOW)
    points = []
    for record in records:
        reward = record.get(_REWARD)
        if reward is not None:
            recent.append(reward)
            points.append(Point(record["step"] + 1, fmean(recent)))
    return points


def steps_to(curve: Sequence[Point], level: float) -> int | None:
    """Completed steps when the curve is first at `level` or above; None if it never is."""
    return next((point.steps for point in curve if point.value >= level), None)
