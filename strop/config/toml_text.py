"""Values and keys as TOML text: what messages show and `strop config` prints."""

import json
import re
from collections.abc import Sequence
from typing import Any

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def write_value(value: Any) -> str:
    """`value` as TOML on one line; None, which TOML does not have, as `null`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            # TOML's basic strings are JSON's, but for DEL.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(write_value(element) for element in value)}]"
        case dict():
            inner = ", ".join(f"{write_key(key)} = {write_value(inner)}" for key, inner in value.items())
            return f"{{{inner}}}"
    return str(value)


def shown(value: Any, limit: int = 80) -> str:
    """`value` for a message, cut at `limit` characters."""
    text = write_value(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def write_key(name: str) -> str:
    """A key, quoted when it must be."""
    return name if BARE_KEY.fullmatch(name) else write_value(name)


def dotted(path: Sequence[str | int]) -> str:
    """`rollout.batch_size`, `eval.datasets.0.n`."""
    return ".".join(write_key(str(part)) for part in path)
