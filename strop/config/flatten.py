"""A table from a file or a flag, taken apart at the leaves of the tree.

Unknown keys and sections that are not tables are found here, where their place is known; the types of the
values are pydantic's.
"""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_origin

from strop.config.hub_names import as_hub_name
from strop.config.keys import Section
from strop.config.schema import KeyPath, Leaf, children
from strop.config.settings import Place, Problem, Put
from strop.config.slime_paths import anchored, is_slimes
from strop.config.suggest import unknown_key
from strop.config.toml_text import dotted, shown
from strop.config.variables import expanded
from strop.errors import ConfigError


@dataclass(frozen=True)
class Source:
    """A file, or one flag."""

    base: Path
    """Directory that relative paths start from; absolute."""
    place: Callable[[KeyPath], Place]
    """Where a key of it was given."""


def flatten_section(
    section: type[Section], table: dict[str, Any], path: KeyPath, source: Source
) -> Iterator[Put | Problem]:
    """Every key of `table`, which stands at `path` of the tree."""
    for name, value in table.items():
        here = (*path, name)
        child = children(section).get(name)
        if child is None:
            yield Problem(source.place(here), unknown_key(here, section))
        elif isinstance(child, Leaf):
            yield from flatten_leaf(child, value, here, source)
        elif isinstance(value, dict):
            yield from flatten_section(child, value, here, source)
        else:
            text = f"{dotted(here)} = {shown(value)} must be a table; put its keys below it, or remove it"
            yield Problem(source.place(here), text)


def flatten_leaf(leaf: Leaf, value: Any, path: KeyPath, source: Source) -> Iterator[Put | Problem]:
    """A value as one setting, or one for each key of a table or of a list of tables."""
    if leaf.rows and isinstance(value, list):
        yield Put(path, [], source.place(path))
        for index, row in enumerate(value):
            yield from _flatten_row(leaf.rows, row, (*path, index), source)
    elif leaf.is_table and leaf.names == "plugin" and isinstance(value, dict) and value:
        yield from _flatten_by_function(value, path, source)
    elif leaf.is_table:
        yield from flatten_free(value, path, source)
    else:
        is_tuple = isinstance(value, list) and isinstance(leaf.default, tuple)
        yield _put_path(leaf, tuple(value) if is_tuple else value, path, source)


def _put_path(leaf: Leaf, value: Any, path: KeyPath, source: Source) -> Put | Problem:
    """The value with every file that it names from the root."""
    try:
        return Put(path, absolute(leaf, value, source.base), source.place(path))
    except ConfigError as error:
        return Problem(
            source.place(path), f"{dotted(path)} = {shown(value)}: {error}, or give --{dotted(path)}"
        )


def _flatten_by_function(table: dict[str, Any], path: KeyPath, source: Source) -> Iterator[Put | Problem]:
    """A table whose keys may name functions: their files are relative to the run file, as values' are."""
    for name, value in table.items():
        here = (*path, name)
        own = Source(source.base, lambda at, here=here: source.place((*here, *at[len(here) :])))  # type: ignore[misc]
        spec = anchored(name, lambda file: _join(source.base, file))
        yield from flatten_free(value, (*path, spec), own)


def flatten_free(value: Any, path: KeyPath, source: Source) -> Iterator[Put | Problem]:
    """A table of the user's own keys: tables merge key by key, an empty one clears."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from flatten_free(inner, (*path, name), source)
    elif _is_plain(value):
        is_path = isinstance(value, str) and is_slimes(value)
        given = anchored(value, lambda file: _join(source.base, file)) if is_path else value
        yield Put(path, given, source.place(path))
    else:
        text = (
            f"{dotted(path)} = {shown(value)} must be text, a finite number, true or false, a list or a table"
        )
        yield Problem(source.place(path), f"{text}; quote it to make it text")


def absolute(leaf: Leaf, value: Any, base: Path) -> Any:
    """A value that names a file, from the root; any other value, also one of the wrong type, as it is.

    Raises ConfigError, without the key, for a `${NAME}` that the environment does not have.
    """
    if get_origin(leaf.type) is list:
        return [_absolute(leaf, element, base) for element in value] if isinstance(value, list) else value
    return _absolute(leaf, value, base)


def _absolute(leaf: Leaf, value: Any, base: Path) -> Any:
    if not isinstance(value, str) or not value:
        return value
    match leaf.names:
        case "file":
            return _join(base, expanded(value))
        case "model" if "/" in value or value in (".", "..", "~"):
            path = _join(base, value)
            return value if as_hub_name(value) and not os.path.isdir(path) else path
        case "plugin":
            return anchored(value, lambda file: _join(base, file))
    return value


def _flatten_row(section: type[Section], row: Any, path: KeyPath, source: Source) -> Iterator[Put | Problem]:
    if not isinstance(row, dict):
        yield Problem(source.place(path), f"{dotted(path)} = {shown(row)} must be a table with a name")
        return
    # An empty row still is one: its name is what is missing.
    yield Put(path, {}, source.place(path))
    yield from flatten_section(section, row, path, source)


def _join(base: Path, value: str) -> str:
    return os.path.abspath(os.path.join(base, os.path.expanduser(value)))


def _is_plain(value: Any) -> bool:
    """What TOML and JSON both can say again."""
    if isinstance(value, list):
        return all(_is_plain(element) for element in value)
    if isinstance(value, dict):
        return all(_is_plain(element) for element in value.values())
    return isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))
