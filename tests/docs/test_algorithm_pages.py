"""The pages of the algorithms: whole, and what they say of the code and of the numbers is so."""

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from cases import case
from manifest import Value, missing
from pages import ROOT

from strop.config.load import load_config
from strop.config.presets import PRESETS
from strop.config.schema import leaves as keys_of_a_run
from strop.reference import algorithms_index
from strop.reference.algorithms_index import INDEX, Opening
from strop.reference.config_page import leaf_name
from strop.telemetry.catalogue import catalogue

FOLDER = ROOT / "docs/explanation/algorithms"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != INDEX)
RECIPES = [path for path in PAGES if path.stem in PRESETS]
SECTIONS = [
    "Equation",
    "Defaults",
    "When to use it",
    "Pitfalls",
    "Worked number",
    "Elsewhere",
    "In the code",
]
CODE = re.compile(r"\[`([^`\]]+)`\]\(([^)\s]+\.py)\)")
BOLD = re.compile(r"\*\*(−?[\d.]+)\*\*")
TERM = re.compile(r"`((?:algo|rollout|train|reward|prompts|buffer|loop)[./][\w./…]+)(?: = [^`]*)?`")
BASE = 'model = "tiny"\n[loop]\nsteps = 5\n[prompts]\nfiles = ["data.jsonl"]\n'
YOURS = "  # yours"
"""Behind a line of defaults that has no default, but must be given."""


def test_every_recipe_has_a_page() -> None:
    assert [name for name in PRESETS if not (FOLDER / f"{name}.md").is_file()] == []


def test_the_index_is_current() -> None:
    assert (FOLDER / INDEX).read_text() == algorithms_index.render(FOLDER, ROOT / "examples"), (
        "run `make docs`"
    )


def test_a_page_opens_with_what_it_is_about() -> None:
    for page in PAGES:
        with case(page.stem):
            opening = Opening.of(page)
            assert page.read_text().startswith("# ")
            assert re.fullmatch(r"[A-Z].{20,120}\.", opening.line), opening.line


def test_a_page_is_read_in_a_minute() -> None:
    for page in PAGES:
        with case(page.stem):
            lines = page.read_text().splitlines()
            assert len(lines) <= 70
            assert [line for line in lines if len(line) > 140 and not line.startswith("|")] == []


def test_equations_hold_nothing_that_github_does_not_show() -> None:
    for page in PAGES:
        with case(page.stem):
            assert re.findall(r"\\operatorname|\\[,;:!|{}\\]", page.read_text()) == []


def test_the_page_of_a_recipe_has_all_sections() -> None:
    for page in RECIPES:
        with case(page.stem):
            assert re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE) == SECTIONS
            assert "$$" in section_of(page, "Equation")


def test_defaults_on_a_page_are_those_of_its_recipe(tmp_path: Path) -> None:
    for page in RECIPES:
        with case(page.stem):
            [block] = re.findall(
                r"^```toml\n(.*?)^```$", section_of(page, "Defaults"), re.MULTILINE | re.DOTALL
            )
            said, own = tomllib.loads(block), "\n".join(set_by_the_reader(block))
            (tmp_path / "base.toml").write_text(BASE)
            (tmp_path / "page.toml").write_text(own)
            config = load_config([tmp_path / "base.toml", tmp_path / "page.toml"]).config.model_dump()
            shown = dict(leaves(said))
            assert shown.pop("algo.type") == page.stem
            assert shown.keys() >= PRESETS[page.stem].keys()
            assert {key: at(config, key) for key in shown if not is_path(shown[key])} == {
                key: value for key, value in shown.items() if not is_path(value)
            }


def test_the_index_leads_to_a_run_file_of_every_recipe_that_has_one() -> None:
    files = [tomllib.loads(file.read_text()) for file in (ROOT / "examples").rglob("*.toml")]
    shown = [line for line in (FOLDER / INDEX).read_text().splitlines() if ".toml](" in line]
    for name in {file["algo"]["type"] for file in files if "algo" in file}:
        assert any(f"| `{name}` " in line for line in shown), name


def test_what_a_page_links_in_the_code_is_there() -> None:
    for page in PAGES:
        with case(page.stem):
            found = [(name, (page.parent / path).resolve()) for name, path in CODE.findall(page.read_text())]
            assert found
            strangers = [
                f"{path.name}: {name}"
                for name, path in found
                if not is_golden(path) and name not in names(path)
            ]
            assert strangers == []


def test_keys_and_metrics_on_a_page_are_there() -> None:
    keys = {leaf_name(path) for path, _ in keys_of_a_run()}
    metrics = [re.sub("<.*?>", "*", metric.name) for metric in catalogue()]
    for page in PAGES:
        with case(page.stem):
            strangers = []
            for name in TERM.findall(page.read_text()):
                asked = name.replace("…", "*")
                is_metric = any(fnmatch(asked, known) or fnmatch(known, asked) for known in metrics)
                strangers += [] if (is_metric if "/" in name else name in keys) else [name]
            assert strangers == []


def test_a_worked_number_is_held_by_the_test_beside_it() -> None:
    for page in PAGES:
        with case(page.stem):
            claims = list(worked(page))
            assert claims or page not in RECIPES
            assert [f"{claim.place}: {why}" for claim in claims if (why := missing(claim))] == []


def test_a_number_that_no_test_holds_is_told(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    link = f"[`2.6-negative`]({ROOT}/tests/golden/test_policy_losses.py)"
    page.write_text(f"s is **1.2** ({link})")
    assert [missing(claim) for claim in worked(page)] == ["2.6-negative does not hold 1.2"]


def test_a_function_that_is_not_there_is_told() -> None:
    known = names(ROOT / "strop/algo/policy.py")
    assert "PolicyGradient.credit" in known
    assert "PolicyGradient.debit" not in known


def section_of(page: Path, title: str) -> str:
    return page.read_text().split(f"## {title}\n")[1].split("\n## ")[0]


def set_by_the_reader(block: str) -> Iterator[str]:
    """The table headers, the type and the lines marked as the reader's."""
    for line in block.splitlines():
        if line.startswith(("[", "type = ")) or line.endswith(YOURS):
            yield line


def leaves(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def at(config: Mapping[str, Any], key: str) -> Any:
    value: Any = config
    for part in key.split("."):
        value = value[part]
    return value


def is_path(value: Any) -> bool:
    """Paths become absolute."""
    return isinstance(value, str) and "/" in value


def is_golden(path: Path) -> bool:
    return "golden" in path.parts


def worked(page: Path) -> Iterator[Value]:
    """The bold numbers before each link to a golden test, since the link before it."""
    begin, text = 0, page.read_text()
    for link in CODE.finditer(text):
        path = (page.parent / link[2]).resolve()
        if is_golden(path):
            values = [float(number.replace("−", "-")) for number in BOLD.findall(text[begin : link.start()])]
            if values:
                yield Value(page.stem, "", tuple(values), f"golden/{path.name}", link[1])
            begin = link.end()


@cache
def names(path: Path) -> frozenset[str]:
    """What a module defines: functions, classes, their methods and fields, constants."""
    return frozenset(_defined(ast.parse(path.read_text()).body))


def _defined(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.ClassDef(name=name):
                yield prefix + name
                yield from _defined(node.body, f"{prefix}{name}.")
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name
