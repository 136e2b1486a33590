"""The transport seam: how new weights reach the engines."""

from typing import Protocol

from strop.engines.base import Weights


class Transport(Protocol):
    """Carries weights from a trainer to engines."""

    async def push(self, weights: Weights, version: int) -> None:
        """Returns when every engine draws with `version`."""
        ...
