"""JSON text of what a run writes: one form for what people read, a strict one for what a run reads back."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from strop.errors import DataError, RunError

_EXACT = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))
_NUMPY = msgspec.json.Encoder(enc_hook=lambda value: _number(value))


def encode(value: Any) -> bytes:
    """One line of valid JSON for logs and summaries. NaN and infinity, which JSON lacks, become null."""
    return _NUMPY.encode(value)


def encode_exact(value: Any, where: str) -> str:
    """One line of JSON that reads back as exactly `value`.

    Raises RunError, opened by `where`, for what JSON cannot hold: NaN, infinity, objects. A run that went
    on from a value quietly changed would no longer be the same run.
    """
    try:
        return _EXACT.encode(value)
    except (TypeError, ValueError) as caught:
        raise RunError(
            f"{where}: cannot be stored as JSON ({caught}); use finite numbers, text, lists and tables"
        ) from caught


def read_json(path: Path) -> Any:
    """The value in a JSON file; DataError when it is missing or not JSON."""
    try:
        return json.loads(path.read_bytes())
    except OSError as caught:
        raise DataError(f"{path}: cannot be read: {caught.strerror}") from caught
    except ValueError as caught:
        raise DataError(f"{path}: is not JSON: {caught}") from caught


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no JSON form")
