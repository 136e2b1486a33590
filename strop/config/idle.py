"""Keys that do nothing beside others."""

from collections.abc import Callable
from dataclasses import dataclass

from strop.config.tree import Config


@dataclass(frozen=True)
class Idle:
    """Keys that do nothing in some configurations."""

    keys: tuple[str, ...]
    cause: str
    """The key that makes them so."""
    holds: Callable[[Config], bool]
