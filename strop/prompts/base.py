"""The prompt seam: where work comes from. A position is the whole state."""

from typing import Any, Protocol

from strop.sample import Prompt


class PromptSource(Protocol):
    """An endless sequence of prompts that can be put back to any position."""

    def next(self, n: int) -> list[Prompt]:
        """The next `n` prompts, always exactly n: a data set smaller than that goes round."""
        ...

    def state(self) -> dict[str, Any]:
        """JSON for `restore`; what follows is the same, on any machine."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go to a position. Raises DataError if it belongs to other data."""
        ...

    def __len__(self) -> int:
        """Prompts in one epoch; 0 for a procedural source, which has no epochs."""
        ...
