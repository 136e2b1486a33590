"""The writing rules that a machine can hold: sizes, names, and what may not be written at all."""

import ast
import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "strop").rglob("*.py"))
EVERYTHING = sorted(
    p for top in ("strop", "tests", "examples", "benchmarks") for p in (ROOT / top).rglob("*.py")
)

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
OF_RULES = (
    ast.Call,
    ast.Attribute,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ExceptHandler,
    ast.Global,
    ast.ClassDef,
)


@dataclass
class Found:
    """What the rules look at in the sources, as (where, what) each; no tree is kept."""

    functions: list[tuple[str, int]] = field(default_factory=list)
    """Their length."""
    bare: list[str] = field(default_factory=list)
    """Parameters and results without an annotation."""
    untitled: list[str] = field(default_factory=list)
    """Files without a docstring."""
    broad: list[str] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    attributes: list[tuple[str, str]] = field(default_factory=list)
    globals: list[str] = field(default_factory=list)
    odd_classes: list[str] = field(default_factory=list)

    def note(self, where: str, node: ast.AST) -> None:
        match node:
            case ast.Call(func=function):
                self.calls.append((where, spelt(function)))
                self.broad += [where] if suppresses_broadly(node) else []
            case ast.Attribute():
                self.attributes.append((where, spelt(node)))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.functions.append((where, length(node)))
                self.bare += [f"{where} {name}" for name in unannotated(node)]
            case ast.ExceptHandler():
                self.broad += [where] if catches_broadly(node) else []
            case ast.Global():
                self.globals.append(where)
            case ast.ClassDef(bases=bases, keywords=keywords):
                self.odd_classes += [where] if len(bases) > 1 or keywords else []


@contextmanager
def without_collection() -> Iterator[None]:
    """A syntax tree has no cycles, but is looked through for them again and again while it grows."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@cache
def found() -> Found:
    everything = Found()
    with without_collection():
        for path in SOURCES:
            tree = ast.parse(path.read_text())
            everything.untitled += [str(path)] if tree.body and not ast.get_docstring(tree) else []
            for node in ast.walk(tree):
                if isinstance(node, OF_RULES):
                    everything.note(at(path, node), node)
    return everything


def percentile(values: list[int], share: float) -> int:
    return sorted(values)[int(share * (len(values) - 1))]


def at(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"


def length(function: ast.AST) -> int:
    return function.end_lineno - function.lineno + 1


def spelt(node: ast.AST) -> str:
    """As it is written; `ast.unparse` is slow for what most calls are."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute(value=ast.Name() | ast.Attribute()):
            return f"{spelt(node.value)}.{node.attr}"
    return ast.unparse(node)


def unannotated(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every = [*named, *filter(None, (arguments.vararg, arguments.kwarg))]
    bare = [a.arg for a in every if a.annotation is None and a.arg not in ("self", "cls")]
    return bare + (["->"] if function.returns is None else [])


def catches_broadly(handler: ast.ExceptHandler) -> bool:
    """A clean-up that raises again at its end catches nothing."""
    caught = "" if handler.type is None else ast.unparse(handler.type)
    passes_on = isinstance(handler.body[-1], ast.Raise) and handler.body[-1].exc is None
    return not caught or (bool(re.search(r"\b(Base)?Exception\b", caught)) and not passes_on)


def suppresses_broadly(call: ast.Call) -> bool:
    silent = ("contextlib.suppress(Exception", "suppress(Exception", "suppress(BaseException")
    return spelt(call.func).endswith("suppress") and ast.unparse(call).startswith(silent)


def functions_in(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Those of a file; of what is not a statement nothing is looked at."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from functions_in(node.__dict__.get(part, []))


def test_no_file_exceeds_400_lines():
    lengths = {p.relative_to(ROOT).as_posix(): len(p.read_text().splitlines()) for p in EVERYTHING}
    assert {name: n for name, n in lengths.items() if n > 400} == {}


def test_95_of_100_files_have_at_most_300_lines():
    assert percentile([len(p.read_text().splitlines()) for p in SOURCES], 0.95) <= 300


def test_no_function_exceeds_60_lines():
    assert [(where, n) for where, n in found().functions if n > 60] == []
    with without_collection():
        for path in set(EVERYTHING) - set(SOURCES):
            text = path.read_text()
            if text.count("\n") > 60:
                lengths = {at(path, f): length(f) for f in functions_in(ast.parse(text).body)}
                assert {where: n for where, n in lengths.items() if n > 60} == {}


def test_95_of_100_functions_have_at_most_40_lines():
    assert percentile([n for _, n in found().functions], 0.95) <= 40


def test_no_file_is_named_for_leftovers():
    leftovers = {"utils", "util", "misc", "common", "helpers", "helper"}
    assert [str(p) for p in SOURCES if p.stem in leftovers or leftovers & set(p.parts)] == []


def test_every_file_opens_with_what_it_owns():
    assert found().untitled == []


def test_every_parameter_and_result_is_annotated():
    assert found().bare == []


def test_only_the_boundary_catches_broadly():
    assert [where for where in found().broad if not where.startswith("strop/errors.py")] == []


def test_attributes_are_looked_up_by_name_only_where_that_is_the_point():
    lookups = [where for where, name in found().calls if name in ("getattr", "hasattr", "setattr")]
    assert [where for where in lookups if where.split(":")[0] not in REFLECTION_ALLOWED] == []


def test_no_module_state():
    assert found().globals == []


def test_environment_variables_are_read_at_the_edge():
    reads = [where for where, name in found().attributes if name in ("os.environ", "os.getenv")]
    assert [where for where in reads if not where.startswith(ENVIRONMENT_ALLOWED)] == []


def test_classes_have_one_parent_and_no_metaclass():
    assert found().odd_classes == []


def test_every_task_has_an_owner():
    loose = ("asyncio.create_task", "asyncio.ensure_future", "loop.create_task")
    assert [where for where, name in found().calls if name in loose] == []


def test_global_random_state_is_never_touched():
    touched = re.compile(
        r"random\.(seed|random|randint|choice|shuffle|sample|uniform)"
        r"|(np|numpy)\.random\.(?!default_rng|Generator|Philox|SeedSequence)\w+"
        r"|torch\.(manual_seed|seed)"
    )
    calls = [where for where, name in found().calls if touched.fullmatch(name)]
    assert [where for where in calls if where.split(":")[0] not in GLOBAL_RANDOM_ALLOWED] == []


def test_nothing_is_left_for_later_without_an_issue_number():
    left = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?!\(#\d+\))")
    assert [p.relative_to(ROOT).as_posix() for p in EVERYTHING if left.search(p.read_text())] == []
