"""`NoPrompts`: the source of what trains on nothing: an evaluation, or a run of no steps."""

from typing import Any

from strop.sample import Prompt


class NoPrompts:
    """Nobody asks it for a prompt."""

    def next(self, n: int) -> list[Prompt]:
        assert n == 0, "a run of no steps takes no prompts"
        return []

    def state(self) -> dict[str, Any]:
        """No position."""
        return {}

    def restore(self, state: dict[str, Any]) -> None: ...

    def __len__(self) -> int:
        return 0
