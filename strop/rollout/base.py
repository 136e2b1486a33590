"""The group-source seam: what fills the buffer. Rollouts are one; offline data is another."""

from typing import Any, Protocol

from strop.buffer.buffer import Buffer


class GroupSource(Protocol):
    """Puts finished, rewarded groups into a buffer, step by step."""

    async def fill(self, buffer: Buffer, steps: range) -> None:
        """For each step, wait for room, then put `groups_per_step` groups in the order of training.

        Raises NothingToLearn when they cannot be had.
        """
        ...

    def state(self) -> dict[str, Any]:
        """JSON for `restore`; true only when no group is in flight."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there: the same groups, of the same prompts, with the same noise."""
        ...
