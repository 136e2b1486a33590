"""The group-source seam: what fills the buffer. Rollouts are one; offline data is another."""

from typing import Any, Protocol

from strop.buffer.buffer import Buffer
from strop.rollout.report import Report
from strop.sample import Group


class GroupSource(Protocol):
    """Puts groups into a buffer, step by step: finished and rewarded, or given by data with roles."""

    reports: dict[int, Report]
    """By step: how its groups came about; the loop takes them out as it closes steps."""

    async def fill(self, buffer: Buffer, steps: range) -> None:
        """For each step, wait for room, then put `groups_per_step` groups in the order of training.

        Raises NothingToLearn when they cannot be had.
        """
        ...

    def record_trained(self, step: int, groups: list[Group]) -> None:
        """Close the books on the groups of a step."""
        ...

    def state(self) -> dict[str, Any]:
        """JSON for `restore`; true only when no group is in flight."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there: the same groups, of the same prompts, with the same noise."""
        ...
