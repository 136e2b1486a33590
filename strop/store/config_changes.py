"""Which keys differ between two stored configurations."""

from typing import Any

FREE_TO_CHANGE = ("loop.steps", "store", "telemetry", "runtime.threads")
"""Keys and sections that a resumed run may set anew: they do not change what a step computes."""

_ABSENT = object()


def changed_keys(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Dotted keys in which a resumed run would differ from the one it continues; nested tables of values."""
    return [key for key in differing_keys(old, new) if not _is_free(key)]


def differing_keys(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """Dotted keys whose values differ or that only one side has, in alphabetical order."""
    left, right = flat(a), flat(b)
    return sorted(
        key for key in left.keys() | right.keys() if left.get(key, _ABSENT) != right.get(key, _ABSENT)
    )


def flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one of dotted keys; a list or an empty table is a value."""
    leaves: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict) and value:
            leaves.update(flat(value, f"{prefix}{name}."))
        else:
            leaves[prefix + name] = value
    return leaves


def _is_free(key: str) -> bool:
    return any(key == free or key.startswith(free + ".") for free in FREE_TO_CHANGE)
