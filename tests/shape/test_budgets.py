"""The writing rules that a machine can hold: sizes, names, and what may not be written at all."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "strop").rglob("*.py"))
EVERYTHING = sorted(
    p for top in ("strop", "tests", "examples", "benchmarks") for p in (ROOT / top).rglob("*.py")
)
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef

REFLECTION_ALLOWED = {
    "strop/__init__.py": "public names are loaded on first use",
    "strop/plugins.py": "user code is found by name",
    "strop/sample.py": "the five columns of Tokens, by field",
    "strop/tokens.py": "the five columns of Tokens, by field",
}
GLOBAL_RANDOM_ALLOWED = {
    "strop/nn/tiny.py": "transformers initialises from it; fork_rng puts it back",
    "strop/nn/lora.py": "peft initialises from it; fork_rng puts it back",
}
ENVIRONMENT_ALLOWED = ("strop/config/", "strop/cli/")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


def parsed(paths: list[Path]) -> Iterator[tuple[str, ast.Module]]:
    for path in paths:
        yield path.relative_to(ROOT).as_posix(), tree_of(path)


def nodes(paths: list[Path], kind: type | tuple[type, ...]) -> Iterator[tuple[str, ast.AST]]:
    for path in paths:
        for node in nodes_of(path):
            if isinstance(node, kind):
                yield path.relative_to(ROOT).as_posix(), node


def at(name: str, node: ast.AST) -> str:
    return f"{name}:{node.lineno}"


def length(function: ast.AST) -> int:
    return function.end_lineno - function.lineno + 1


def percentile(values: list[int], share: float) -> int:
    return sorted(values)[int(share * (len(values) - 1))]


def spelt(node: ast.AST) -> str:
    """As it is written; `ast.unparse` is slow for what most calls are."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute(value=ast.Name() | ast.Attribute()):
            return f"{spelt(node.value)}.{node.attr}"
    return ast.unparse(node)


def is_call_of(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and spelt(node.func) in names


def test_no_file_exceeds_400_lines():
    lengths = {p.relative_to(ROOT).as_posix(): len(p.read_text().splitlines()) for p in EVERYTHING}
    assert {name: n for name, n in lengths.items() if n > 400} == {}


def test_95_of_100_files_have_at_most_300_lines():
    assert percentile([len(p.read_text().splitlines()) for p in SOURCES], 0.95) <= 300


def test_no_function_exceeds_60_lines():
    found = [(at(name, f), length(f)) for name, f in nodes(EVERYTHING, FUNCTIONS)]
    assert [(where, n) for where, n in found if n > 60] == []


def test_95_of_100_functions_have_at_most_40_lines():
    assert percentile([length(f) for _, f in nodes(SOURCES, FUNCTIONS)], 0.95) <= 40


def test_no_file_is_named_for_leftovers():
    leftovers = {"utils", "util", "misc", "common", "helpers", "helper"}
    assert [str(p) for p in SOURCES if p.stem in leftovers or leftovers & set(p.parts)] == []


def test_every_file_opens_with_what_it_owns():
    assert [name for name, tree in parsed(SOURCES) if tree.body and not ast.get_docstring(tree)] == []


def test_every_parameter_and_result_is_annotated():
    missing = []
    for name, function in nodes(SOURCES, FUNCTIONS):
        arguments = function.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every = [*named, *filter(None, (arguments.vararg, arguments.kwarg))]
        bare = [a.arg for a in every if a.annotation is None and a.arg not in ("self", "cls")]
        missing += [f"{at(name, function)} {a}" for a in bare]
        missing += [f"{at(name, function)} ->"] if function.returns is None else []
    assert missing == []


def catches_broadly(handler: ast.ExceptHandler) -> bool:
    """A clean-up that raises again at its end catches nothing."""
    caught = "" if handler.type is None else ast.unparse(handler.type)
    passes_on = isinstance(handler.body[-1], ast.Raise) and handler.body[-1].exc is None
    return not caught or (bool(re.search(r"\b(Base)?Exception\b", caught)) and not passes_on)


def test_only_the_boundary_catches_broadly():
    handlers = [at(name, h) for name, h in nodes(SOURCES, ast.ExceptHandler) if catches_broadly(h)]
    silent = ("contextlib.suppress(Exception", "suppress(Exception", "suppress(BaseException")
    suppressed = [at(name, c) for name, c in nodes(SOURCES, ast.Call) if ast.unparse(c).startswith(silent)]
    assert [where for where in handlers + suppressed if not where.startswith("strop/errors.py")] == []


def test_attributes_are_looked_up_by_name_only_where_that_is_the_point():
    calls = [
        at(name, call)
        for name, call in nodes(SOURCES, ast.Call)
        if is_call_of(call, "getattr", "hasattr", "setattr") and name not in REFLECTION_ALLOWED
    ]
    assert calls == []


def test_no_module_state():
    assert [at(name, node) for name, node in nodes(SOURCES, ast.Global)] == []


def test_environment_variables_are_read_at_the_edge():
    reads = [
        at(name, node)
        for name, node in nodes(SOURCES, ast.Attribute)
        if spelt(node) in ("os.environ", "os.getenv") and not name.startswith(ENVIRONMENT_ALLOWED)
    ]
    assert reads == []


def test_classes_have_one_parent_and_no_metaclass():
    found = [at(name, c) for name, c in nodes(SOURCES, ast.ClassDef) if len(c.bases) > 1 or c.keywords]
    assert found == []


def test_every_task_has_an_owner():
    loose = ("asyncio.create_task", "asyncio.ensure_future", "loop.create_task")
    assert [at(name, call) for name, call in nodes(SOURCES, ast.Call) if is_call_of(call, *loose)] == []


def test_global_random_state_is_never_touched():
    touched = re.compile(
        r"random\.(seed|random|randint|choice|shuffle|sample|uniform)"
        r"|(np|numpy)\.random\.(?!default_rng|Generator|Philox|SeedSequence)\w+"
        r"|torch\.(manual_seed|seed)"
    )
    calls = [(name, c) for name, c in nodes(SOURCES, ast.Call) if touched.fullmatch(spelt(c.func))]
    assert [at(name, call) for name, call in calls if name not in GLOBAL_RANDOM_ALLOWED] == []


@pytest.mark.parametrize("marker", ["TO" + "DO", "FIX" + "ME", "XX" + "X"])
def test_nothing_is_left_for_later_without_an_issue_number(marker):
    left = re.compile(rf"\b{marker}\b(?!\(#\d+\))")
    assert [p.relative_to(ROOT).as_posix() for p in EVERYTHING if left.search(p.read_text())] == []
