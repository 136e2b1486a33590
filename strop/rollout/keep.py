"""Which finished groups are trained; every group that is not has a reason."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from strop.errors import Recorded, boundary
from strop.plugins import resolve
from strop.sample import Group, Status


@dataclass(frozen=True, slots=True)
class Drop:
    """Do not train this group, because."""

    reason: str


class KeepFailed(Recorded):
    """The keep function raised or returned something that is neither a bool nor a Drop."""


Keep = Callable[[Group], bool | np.bool_ | Drop]


def reward_std(group: Group) -> bool | Drop:
    """Rewards must differ within the group, or its advantages are all 0 (DAPO's dynamic sampling)."""
    return not group.has_equal_rewards or Drop(f"all rewards equal: {group.rewards[0]:g}")


def open_keep(spec: str | None) -> Keep | None:
    """The function that `rollout.keep` names. Raises PluginError."""
    if spec is None:
        return None
    keep: Keep = resolve(
        spec, key="rollout.keep", names={"reward_std": "strop.rollout.keep:reward_std"}, group="strop.keep"
    )
    return keep


def judge(group: Group, keep: Keep | None) -> Drop | None:
    """Why the group is dropped, or None. A group with a failed sample is: a failure is not a reward of 0."""
    failed = [s for s in group.samples if s.status is Status.FAILED]
    if failed:
        return Drop(f"failed: {failed[0].error}")
    if any(not math.isfinite(reward) for reward in group.rewards):
        return Drop("failed: a reward is not finite")
    if keep is None:
        return None
    try:
        with boundary(KeepFailed, "rollout.keep"):
            verdict = keep(group)
            if not isinstance(verdict, bool | np.bool_ | Drop):
                raise TypeError(f"expected a bool or a Drop, got {verdict!r}")
    except KeepFailed as error:
        return Drop(f"failed: {error}")
    if isinstance(verdict, Drop):
        return verdict
    return None if verdict else Drop("rollout.keep")
