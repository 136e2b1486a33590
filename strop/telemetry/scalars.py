"""The numbers of a record that a chart can show, under the names of the catalogue."""

import math
from collections.abc import Mapping
from typing import Any

_COUNTERS = ("step", "version")


def step_scalars(record: Mapping[str, Any]) -> dict[str, float]:
    """Of a step; what is null or not finite is left out."""
    return {
        name: float(value) for name, value in record.items() if name not in _COUNTERS and _is_number(value)
    }


def eval_scalars(record: Mapping[str, Any]) -> dict[str, float]:
    """Of an evaluation, as `eval/<name>/…`."""
    return {f"eval/{record['dataset']}/{name}": value for name, value in step_scalars(record).items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
