"""What the tree holds, key by key: its type in words, its default, its flags."""

import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo

from strop.config.keys import Section
from strop.config.tree import Config

KeyPath = tuple[str | int, ...]
"""Names from the root down; a number is the place in a list of tables."""


@dataclass(frozen=True)
class Leaf:
    """One key that holds a value, not a section."""

    type: Any
    """Annotation without `None` and without bounds."""
    optional: bool
    """May be unset."""
    required: bool
    default: Any
    """None when required."""
    help: str
    slime: str | None
    """slime's flat flag."""
    names: str | None
    """What the value points to: "file", "plugin", "model" or nothing."""
    bounds: tuple[str, ...]
    """For people, e.g. "≥ 1"."""

    @property
    def is_table(self) -> bool:
        """A table with keys of the user's own."""
        return get_origin(self.type) is dict

    @property
    def rows(self) -> type[Section] | None:
        """The section that each element of a list of tables is."""
        element = element_type(self.type)
        return element if isinstance(element, type) and issubclass(element, Section) else None


@dataclass(frozen=True)
class Target:
    """What a dotted name means."""

    path: KeyPath
    leaf: Leaf
    inside: bool
    """The path goes on into a table of the user's own keys."""


@cache
def children(section: type[Section]) -> dict[str, Leaf | type[Section]]:
    """The keys of a section in the order of the tree."""
    return {name: _child(field) for name, field in section.model_fields.items()}


def leaves(section: type[Section] = Config, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Leaf]]:
    """Every key under `section`; a list of tables comes as itself, then each key of a row, as row 0."""
    for name, child in children(section).items():
        here = (*path, name)
        if not isinstance(child, Leaf):
            yield from leaves(child, here)
            continue
        yield here, child
        if child.rows:
            yield from leaves(child.rows, (*here, 0))


def sections(section: type[Section] = Config, path: KeyPath = ()) -> Iterator[KeyPath]:
    """The path of every section below the root, parents first."""
    for name, child in children(section).items():
        if not isinstance(child, Leaf):
            yield (*path, name)
            yield from sections(child, (*path, name))


@cache
def slime_flags() -> dict[str, KeyPath]:
    """slime's flag → the key that declares it."""
    return {leaf.slime: path for path, leaf in leaves() if leaf.slime}


def resolve(parts: Sequence[str]) -> Target | None:
    """The key that `rollout.batch_size`, `eval.datasets.0.n` or `reward.options.pattern` names, if any."""
    section: type[Section] = Config
    path: KeyPath = ()
    rest = list(parts)
    while rest:
        child = children(section).get(rest[0])
        path, rest = (*path, rest[0]), rest[1:]
        if child is None:
            return None
        if not isinstance(child, Leaf):
            section = child
        elif not rest:
            return Target(path, child, inside=False)
        elif child.is_table and all(rest):
            return Target((*path, *rest), child, inside=True)
        elif child.rows and rest[0] in map(str, range(1000)):
            section, path, rest = child.rows, (*path, int(rest[0])), rest[1:]
        else:
            return None
    return None


def nearest(path: Sequence[str | int]) -> Target:
    """The innermost key that holds `path`, a place inside its value."""
    parts = [str(part) for part in path]
    found = (resolve(parts[:end]) for end in range(len(parts), 0, -1))
    return next(target for target in found if target)


def leaf_paths(value: Section, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every leaf of a loaded config with its value; lists of tables row by row, an empty one as itself."""
    for name, child in children(type(value)).items():
        inner = value.__dict__[name]
        here = (*path, name)
        if not isinstance(child, Leaf):
            yield from leaf_paths(inner, here)
        elif child.rows and inner:
            for index, row in enumerate(inner):
                yield from leaf_paths(row, (*here, index))
        else:
            yield here, inner


def words(kind: Any) -> str:
    """A type as a person says it: "a whole number", "a list of text", one of "a" or "b"."""
    plain = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    if kind in plain:
        return plain[kind]
    if get_origin(kind) is Literal:
        choices = [f'"{choice}"' for choice in get_args(kind)]
        return choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    if get_origin(kind) is dict:
        return "a table"
    element = element_type(kind)
    if get_origin(kind) is tuple:
        return f"a list of {len(get_args(kind))} {_plural(element)}"
    if get_origin(element) is Literal and len(get_args(element)) > 1:
        return f"a list, each {words(element)}"
    return f"a list of {_plural(element)}"


def element_type(kind: Any) -> Any:
    """What a list or tuple type holds; None for other types."""
    if get_origin(kind) not in (list, tuple):
        return None
    return _plain(get_args(kind)[0])


def _plural(element: Any) -> str:
    names = {str: "texts", int: "whole numbers", float: "numbers"}
    if get_origin(element) is Literal:
        return words(element)
    return names.get(element, "tables")


def _child(field: FieldInfo) -> Leaf | type[Section]:
    arms = get_args(field.annotation) if get_origin(field.annotation) in (Union, types.UnionType) else None
    kind = _plain(next(arm for arm in arms if arm is not type(None)) if arms else field.annotation)
    if isinstance(kind, type) and issubclass(kind, Section):
        return kind
    extra: dict[str, Any] = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    return Leaf(
        type=kind,
        optional=arms is not None,
        required=field.is_required(),
        default=None if field.is_required() else field.get_default(call_default_factory=True),
        help=" ".join((field.description or "").split()),
        slime=extra.get("slime"),
        names=extra.get("path"),
        bounds=tuple(_bounds(field.metadata)),
    )


def _plain(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _bounds(metadata: list[Any]) -> Iterator[str]:
    for bound in metadata:
        match bound:
            case Ge():
                yield f"≥ {bound.ge}"
            case Gt():
                yield f"> {bound.gt}"
            case Le():
                yield f"≤ {bound.le}"
            case Lt():
                yield f"< {bound.lt}"
