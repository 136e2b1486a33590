"""What differs between two stored configurations, and what of it a resumed run may change."""

from typing import Any

FREE_TO_CHANGE = ("store", "telemetry", "runtime.threads")
"""Keys and sections that do not change what a step computes, up to the last bits of its numbers."""
STEPS = "loop.steps"
SCHEDULE = "train.optim.schedule"

_ABSENT = object()


def changed_keys(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Dotted keys in which a resumed run would differ from the one it continues; nested tables of values."""
    free = free_to_change(old)
    return [key for key in differing_keys(old, new) if not _is_in(key, free)]


def free_to_change(values: dict[str, Any]) -> tuple[str, ...]:
    """Keys and sections that a run with these values may set anew when it is resumed.

    The number of steps is one where the learning rate does not depend on it.
    """
    return (STEPS, *FREE_TO_CHANGE) if flat(values)[SCHEDULE] == "constant" else FREE_TO_CHANGE


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


def _is_in(key: str, sections: tuple[str, ...]) -> bool:
    return any(key == section or key.startswith(section + ".") for section in sections)
