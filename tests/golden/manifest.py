"""Prints formula → test → value, and exits 1 if a value of the specification is held by no test.

`.venv/bin/python tests/golden/manifest.py`. A value counts as held when it is a number in a row of the
parametrisation of the test that is named, or, of a test without rows, in its body. A row holds as many
numbers as the specification gives for it, or it is reported; a skipped test holds none.
"""

# ruff: noqa: T201 (it is a program)

import ast
import importlib
import inspect
import math
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).parents[2]
NOT_RUN = {"skip", "xfail"}
TOLERANCE = 1e-6
"""Relative; 0 is 0."""


@dataclass(frozen=True)
class Value:
    """What one worked example of the specification says."""

    section: str
    what: str
    values: tuple[float, ...]
    file: str
    """Of the test, under tests/."""
    place: str
    """The id of a row, how the ids of several begin, or the name of a test."""


def missing(claim: Value) -> str | None:
    """Why a value is not held, or None."""
    path = ROOT / "tests" / claim.file
    if not path.is_file():
        return f"there is no {claim.file}"
    held = _numbers_at(claim, _module(path))
    if held is None:
        return f"{claim.file} has no row or test {claim.place}"
    absent = _unmatched(claim.values, held)
    return f"{claim.place} does not hold {', '.join(map(str, absent))}" if absent else None


def _unmatched(wanted: tuple[float, ...], held: list[float]) -> list[float]:
    """Each number held answers for one that is wanted."""
    left, absent = list(held), []
    for value in wanted:
        near = [x for x in left if math.isclose(x, value, rel_tol=TOLERANCE)]
        if near:
            left.remove(near[0])
        else:
            absent.append(value)
    return absent


@cache
def _module(path: Path) -> ModuleType:
    """As pytest imports it: by its name, its folder on the path."""
    for folder in (str(ROOT / "tests"), str(path.parent)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    return importlib.import_module(path.stem)


def _numbers_at(claim: Value, module: ModuleType) -> list[float] | None:
    """None if there is no such place."""
    tests = {name: f for name, f in vars(module).items() if name.startswith("test_") and not _is_not_run(f)}
    if claim.place in tests:
        test = tests[claim.place]
        of_rows = [number for _, values in _rows(test) for number in _numbers(values)]
        return of_rows + _numbers_in_body(test)
    found = [values for test in tests.values() for id_, values in _rows(test) if _begins(id_, claim.place)]
    return [number for values in found for number in _numbers(values)] if found else None


def _begins(id_: str | None, place: str) -> bool:
    return id_ is not None and (id_ == place or id_.startswith(f"{place}-"))


def _is_not_run(test: Any) -> bool:
    return any(mark.name in NOT_RUN for mark in getattr(test, "pytestmark", []))


def _rows(test: Any) -> Iterator[tuple[str | None, tuple[Any, ...]]]:
    """Id and values of every row of every parametrisation of a test."""
    for mark in getattr(test, "pytestmark", []):
        if mark.name != "parametrize":
            continue
        names, rows = mark.args[:2]
        ids = mark.kwargs.get("ids")
        for place, row in enumerate(rows):
            if hasattr(row, "marks"):  # a pytest.param
                if not any(mark.name in NOT_RUN for mark in row.marks):
                    yield row.id, tuple(row.values)
            else:
                is_single = isinstance(names, str) and "," not in names
                id_ = ids[place] if isinstance(ids, list | tuple) else None
                yield id_, (row,) if is_single else tuple(row)


def _numbers(value: Any) -> list[float]:
    """All in a nest of containers, arrays and tensors; True and False are none."""
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, bool):
        return []
    if isinstance(value, int | float):
        return [float(value)]
    if isinstance(value, dict):
        return _numbers([*value.keys(), *value.values()])
    if isinstance(value, list | tuple | set):
        return [number for item in value for number in _numbers(item)]
    return []


def _numbers_in_body(test: FunctionType) -> list[float]:
    """Those that are written in a test, and in the constants of its module that it names."""
    function = ast.parse(textwrap.dedent(inspect.getsource(test))).body[0]
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    written = [number for statement in function.body for number in _written(statement)]
    named = {name for name in test.__code__.co_names if name.isupper()}
    return written + [number for name in sorted(named) for number in _numbers(test.__globals__.get(name))]


def _written(node: ast.AST) -> Iterator[float]:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            yield -float(number)
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            yield float(number)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _written(child)


def main() -> int:
    from worked_values import LATER, VALUES

    failed = 0
    for claim in VALUES:
        why = missing(claim)
        failed += why is not None
        values = ", ".join(f"{value:.10g}" for value in claim.values)
        print(f"{claim.section} {claim.what} → tests/{claim.file}::{claim.place} → {why or values}")
    for section, why in LATER.items():
        print(f"{section} → not yet: {why}")
    print(f"{len(VALUES)} examples, {sum(len(c.values) for c in VALUES)} values, {failed} not held")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
