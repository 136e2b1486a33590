"""Which finished groups are trained; every group that is not has a reason."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from strop.errors import Recorded, boundary
from strop.plugins import resolve
from strop.sample import Group, Status

BUILTIN = {
    "all": "strop.rollout.keep:every",
    "reward_std": "strop.rollout.keep:reward_std",
    "reward_std_or_fill": "strop.rollout.keep:reward_std_or_fill",
}


@dataclass(frozen=True, slots=True)
class Drop:
    """Do not train this group, because."""

    reason: str
    may_fill: bool = False
    """Train it all the same if the step would otherwise stay short, after `rollout.max_tries` rounds."""


class KeepFailed(Recorded):
    """The keep function raised or returned something that is neither a bool nor a Drop."""


Keep = Callable[[Group], bool | np.bool_ | Drop]


def every(group: Group) -> bool:  # noqa: ARG001 - the seam's
    """Every group, as without a filter: for an `algo.type` that names one."""
    return True


def reward_std(group: Group) -> bool | Drop:
    """Rewards must differ within the group, or its advantages are all 0 (DAPO's dynamic sampling)."""
    return not group.has_equal_rewards or Drop(f"all rewards equal: {group.rewards[0]:g}")


def reward_std_or_fill(group: Group) -> bool | Drop:
    """As `reward_std`, but a step that stays short is filled with groups of equal rewards."""
    verdict = reward_std(group)
    return Drop(verdict.reason, may_fill=True) if isinstance(verdict, Drop) else verdict


def open_keep(spec: str | None, *, names: Mapping[str, object] = MappingProxyType({})) -> Keep | None:
    """The function that `rollout.keep` names; `names`: further ones, by spec. Raises PluginError."""
    if spec is None:
        return None
    keep: Keep = resolve(spec, key="rollout.keep", names={**BUILTIN, **names}, group="strop.keep")
    return keep


def judge(group: Group, keep: Keep | None) -> Drop | None:
    """Why the group is dropped, or None. A group with a failed sample is: a failure is not a reward of 0; and
    one with an aborted sample, whose end nobody knows; the greedy reply among them."""
    for sample in (*group.samples, *group.greedy):
        if sample.status is Status.FAILED:
            return Drop(f"failed: {sample.error}")
        if sample.status is Status.ABORTED:
            return Drop("aborted")
    rewards = [*group.rewards, *(group.greedy_reward for _ in group.greedy[:1])]
    if any(not math.isfinite(reward) for reward in rewards):
        return Drop("failed: a reward is not finite")
    if keep is None:
        return None
    before = list(group.samples)
    try:
        with boundary(KeepFailed, "rollout.keep"):
            verdict = keep(group)
            if len(group.samples) != len(before):
                group.samples = before
                raise ValueError("it changed group.samples; set sample.remove_sample instead")
            if not isinstance(verdict, bool | np.bool_ | Drop):
                raise TypeError(f"expected a bool or a Drop, got {verdict!r}")
    except KeepFailed as error:
        return Drop(f"failed: {error}")
    if isinstance(verdict, Drop):
        return verdict
    return None if verdict else Drop("rollout.keep")


def kind_of(reason: str) -> str:
    """A reason's part of the name of a metric: its words before a colon. Numbers are left out, so that the
    names of a run stay few; the ledger has the whole reasons."""
    words = re.findall(r"[a-z]+", reason.split(":")[0].lower())
    return "_".join(words)[:40].rstrip("_") or "other"
