"""The words after a flag, read as the type of its key.

Text that does not fit the type stays text: the types are checked in one place, with the values of files.
"""

import contextlib
import json
import tomllib
from typing import Any, get_origin

from strop.config.schema import Leaf, Target, element_type, words
from strop.errors import ConfigError


def parse(target: Target, texts: list[str], flag: str) -> Any:
    """The value that `texts`, the words after `flag`, give to a key.

    Raises `ConfigError` (without the flag's name) when there are too few or too many of them.
    """
    leaf = target.leaf
    if target.inside:
        return inline(_only(texts, flag, "a value"))
    if leaf.type is bool and not texts:
        return True
    if get_origin(leaf.type) in (list, tuple):
        return _list(leaf, texts, flag)
    text = _only(texts, flag, words(leaf.type))
    if leaf.is_table:
        return inline(text)
    return None if leaf.optional and text == "none" else scalar(leaf.type, text)


def scalar(kind: Any, text: str) -> Any:
    """`text` as an int, float or bool where it is one; else as it is."""
    if kind is bool:
        return {"true": True, "false": False}.get(text, text)
    if kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def inline(text: str) -> Any:
    """A value in TOML or JSON, such as `3`, `true`, `[1, 2]`, `{a = 1}`; anything else is text."""
    if text[:1] not in "\"'[{" and "#" in text:
        # TOML would take the rest for a comment.
        return text
    with contextlib.suppress(tomllib.TOMLDecodeError):
        parsed = tomllib.loads(f"x = {text}")
        if list(parsed) == ["x"] and isinstance(parsed["x"], str | bool | int | float | list | dict):
            return parsed["x"]
    if text[:1] in "[{":
        with contextlib.suppress(json.JSONDecodeError):
            return json.loads(text)
    return text


def _list(leaf: Leaf, texts: list[str], flag: str) -> Any:
    if not texts:
        raise ConfigError(f"needs values: {words(leaf.type)}; {flag} [] is none")
    if leaf.rows:
        return inline(_only(texts, flag, "a list of tables, such as '[{name = \"dev\"}]'"))
    if len(texts) == 1 and texts[0].startswith("["):
        return inline(texts[0])
    element = element_type(leaf.type)
    return [scalar(element, text) for text in texts]


def _only(texts: list[str], flag: str, what: str) -> str:
    if not texts:
        raise ConfigError(f"needs a value: {what}")
    if len(texts) > 1:
        rest = " ".join(texts[1:])
        raise ConfigError(
            f"takes one value, but {rest} follows {flag} {texts[0]}; run files go before the flags"
        )
    return texts[0]
