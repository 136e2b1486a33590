"""Where a function of slime's is, and which of slime's two signatures it has."""

import ast
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strop.compat.names import install
from strop.config.slime_paths import split
from strop.errors import PluginError
from strop.plugins import name_of, resolve


@dataclass(frozen=True, slots=True)
class Form:
    """A signature: its arguments by position, and those that are passed by name where a function has them."""

    takes: tuple[str, ...]
    by_name: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"({', '.join([*self.takes, *(f'[{name}]' for name in self.by_name)])})"


def load(spec: str, *, key: str) -> Callable[..., Any]:
    """The function or class of `slime:package.module.name`, `slime:file.py:name` or `slime:file.py`; slime's
    own import names are there for it. Raises PluginError."""
    install()
    _, where = split(spec)
    found: Callable[..., Any] = resolve(
        _with_name(where, key=f"{key} = {spec!r}"), key=key, names={}, group=""
    )
    return found


def form_of(fn: Callable[..., Any], forms: Sequence[Form], *, key: str) -> Form:
    """The form whose arguments are just those that `fn` needs. Told by their number, never by their names: an
    optional argument must be one that is passed by name. Raises PluginError."""
    required, optional, needed = _parameters(fn, key=key)
    for form in forms:
        if len(form.takes) == required and {*optional, *needed} <= set(form.by_name):
            return form
    raise PluginError(
        f"{key}: {name_of(fn)}{inspect.signature(fn)} is none of slime's signatures here: "
        f"{' or '.join(map(str, forms))}"
    )


def passed_by_name(fn: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """Those of `given` that `fn` has a parameter for, as slime passes them."""
    parameters = inspect.signature(fn).parameters
    return {name: value for name, value in given.items() if name in parameters}


def _parameters(fn: Callable[..., Any], *, key: str) -> tuple[int, list[str], list[str]]:
    """How many it needs by position; names of those by position that have a default; of those that it needs
    by name."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except ValueError as caught:
        raise PluginError(f"{key}: {name_of(fn)} does not tell what it takes; wrap it in a def") from caught
    listed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in listed if p.default is p.empty]
    optional = [p.name for p in listed if p.default is not p.empty]
    by_name = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    return len(required), optional, by_name


def _with_name(where: str, *, key: str) -> str:
    """`package.module:name`, or `file.py:name`: for a file alone the function that has the file's name, or
    the only public one in it."""
    if not where.endswith(".py"):
        module, dot, name = where.rpartition(".")
        return f"{module}:{name}" if dot and ":" not in where else where
    file = Path(where)
    if not file.is_file():
        raise PluginError(f"{key}: no file {where!r}")
    try:
        body = ast.parse(file.read_text(encoding="utf-8")).body
    except SyntaxError as error:
        raise PluginError(f"{key}: {where}:{error.lineno}: {error.msg}") from error
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    names = [node.name for node in body if isinstance(node, kinds) and node.name[0] != "_"]
    if file.stem in names or len(names) == 1:
        return f"{where}:{file.stem if file.stem in names else names[0]}"
    raise PluginError(f"{key}: which of {', '.join(names) or 'nothing'}? say {where}:name")
