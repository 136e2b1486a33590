"""`org/name` and `org/name@revision`: how a model of the Hugging Face Hub is named."""

import re
from dataclasses import dataclass

_SHAPE = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@([\w./-]+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class HubName:
    """A repository of the Hub, and which state of it."""

    repo: str
    revision: str | None
    """A branch, a tag or a commit; None: the main branch."""


def as_hub_name(value: str) -> HubName | None:
    """None when `value` cannot be one: with other than one slash, or beginning like a path."""
    found = _SHAPE.fullmatch(value)
    return HubName(found[1], found[2]) if found else None
