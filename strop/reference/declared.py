"""What a class or a module declares, read from its source: annotations as they are written, and the
docstrings under fields and constants, which do not exist at run time."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

FACTORY = re.compile(r"field\(default_factory=(dict|list)\)")


@dataclass(frozen=True, slots=True)
class Declared:
    """A field, a constant or a method."""

    name: str
    text: str
    """`ids: NDArray[np.int32]`, `METRICS = "metrics.jsonl"`, `async step(reply: Reply) -> Step`."""
    doc: str


def fields(of: type[Any] | ModuleType) -> list[Declared]:
    """Public fields of a class, or constants of a module, in the order of the source."""
    body = _body(of)
    return [
        Declared(name, FACTORY.sub(_empty, ast.unparse(node)), _docstring_after(body, at))
        for at, node in enumerate(body)
        for name in _assigned(node)
        if not name.startswith("_")
    ]


def methods(of: type[Any] | ModuleType) -> list[Declared]:
    """Public methods and functions, in the order of the source; properties are left out."""
    return [
        Declared(node.name, _signature(node), inspect.cleandoc(ast.get_docstring(node) or ""))
        for node in _body(of)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (not node.name.startswith("_") or node.name in ("__call__", "__len__"))
        and not node.decorator_list
    ]


def _body(of: type[Any] | ModuleType) -> list[ast.stmt]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(of)))
    first = tree.body[0]
    return first.body if isinstance(of, type) and isinstance(first, ast.ClassDef) else tree.body


def _empty(found: re.Match[str]) -> str:
    return {"dict": "{}", "list": "[]"}[found[1]]


def _assigned(node: ast.stmt) -> Iterator[str]:
    targets = [node.target] if isinstance(node, ast.AnnAssign) else []
    targets = node.targets if isinstance(node, ast.Assign) else targets  # type: ignore[assignment]
    yield from (target.id for target in targets if isinstance(target, ast.Name))


def _docstring_after(body: list[ast.stmt], at: int) -> str:
    after = body[at + 1] if at + 1 < len(body) else None
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
        return inspect.cleandoc(str(after.value.value))
    return ""


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    taken = ast.unparse(node.args).removeprefix("self").removeprefix(", ")
    opening = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    gives = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{opening}{node.name}({taken}){gives}"
