"""Where two configurations differ, key by key, with the origin of either value."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from strop.config.load import Loaded
from strop.config.schema import KeyPath, leaf_paths, leaves
from strop.config.toml_text import dotted

_FOLLOWS = ("default", "batch identity")
"""Origins of what nobody gave."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and where it was given."""

    value: Any
    origin: str


Settings = Mapping[str, Setting]
"""By dotted key; tables and lists of tables key by key."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One key; None on the side that has no such key, as of a data set that only the other has."""

    key: str
    left: Setting | None
    right: Setting | None


def settings_of(loaded: Loaded) -> Settings:
    """Every key of a configuration."""
    found: dict[str, Setting] = {}
    for path, value in leaf_paths(loaded.config):
        for inner, part in _parts(path, value):
            key = dotted(inner)
            found[key] = Setting(part, loaded.origins.get(key, loaded.origins.get(dotted(path), "default")))
    return found


def defaults() -> Settings:
    """Every key that has a default; those of tables in a list have none, as there is no table by default."""
    plain = ((path, leaf) for path, leaf in leaves() if all(isinstance(part, str) for part in path))
    return {dotted(path): Setting(leaf.default, "default") for path, leaf in plain if not leaf.required}


def differences(left: Settings, right: Settings) -> list[Difference]:
    """In the order of the tree, those of `right` alone at the end."""
    found = (Difference(key, left.get(key), right.get(key)) for key in dict.fromkeys([*left, *right]))
    return [difference for difference in found if _differs(difference)]


def _differs(difference: Difference) -> bool:
    left, right = difference.left, difference.right
    if left is not None and right is not None:
        follows = left.origin in _FOLLOWS and right.origin in _FOLLOWS and None in (left.value, right.value)
        return left.value != right.value and not follows
    there = left or right
    # An empty table or list is the absence of the keys that the other side has in it.
    return there is not None and there.origin not in _FOLLOWS and there.value not in ([], {})


def _parts(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, Any]]:
    """A table of the user's own keys, key by key."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _parts((*path, name), inner)
    else:
        yield path, value
