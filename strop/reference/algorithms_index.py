"""docs/explanation/algorithms/index.md: a line for every recipe, from its preset and its page."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strop.config.algo import Algo
from strop.config.presets import PRESETS
from strop.reference.markdown import page, paragraph, table

INDEX = "index.md"
COMPARED = "compared.md"
"""Written by docs/figures/recipes.py from runs; there is none before these."""
INTRO = """
`algo.type` names a recipe: defaults for the keys of `[algo]`, each of which can be set beside it. Every page
has the equation, the defaults, when to use it, what goes wrong with it elsewhere, a worked number that a test
holds, and links to the functions that compute it.
"""
FROM_REWARDS = """
The model answers prompts, rewards judge the answers. PPO is the general case; the others do without its
critic, and differ in what an answer is compared with (`algo.advantage`), how far one update may go
(`algo.policy_loss`) and what is averaged (`algo.aggregation`).
"""
FROM_ROWS = """
The answers are in the data. There is neither an engine nor a reward: `algo.objective` is the loss.
"""
PARTS = """
Each is a key of its own, whatever the recipe.
"""
_OF_REWARDS = ("advantage", "policy_loss", "aggregation")
_PAPER = re.compile(r"https://arxiv\.org/abs/(\d{4}\.\d{5})")


@dataclass(frozen=True, slots=True)
class Opening:
    """How a page begins."""

    title: str
    line: str
    """What it is, in a sentence: the first line below the title."""
    paper: str | None
    """arXiv id of the first paper that it links."""

    @classmethod
    def of(cls, path: Path) -> "Opening":
        """Of a page of which the first line is its title and the third says what it is."""
        text = path.read_text(encoding="utf-8")
        title, _, line = text.splitlines()[:3]
        paper = _PAPER.search(text)
        return cls(title.removeprefix("# "), line, paper[1] if paper else None)


def render(folder: Path, examples: Path) -> str:
    """The index of the pages in `folder`; `examples` holds run files that name their recipe."""
    taught = [name for name, preset in PRESETS.items() if "algo.objective" not in preset]
    given = [name for name in PRESETS if name not in taught]
    return page(
        "Algorithms",
        "strop/config/presets.py and the first lines of the pages",
        paragraph(INTRO),
        "## From rewards",
        paragraph(FROM_REWARDS),
        table(
            (
                "recipe",
                "`algo.type`",
                *(f"`{key}`" for key in _OF_REWARDS),
                "paper",
                "run file",
                "what it is",
            ),
            (_recipe(name, _OF_REWARDS, folder, examples) for name in taught),
        ),
        _compared(folder),
        "## From rows",
        paragraph(FROM_ROWS),
        table(
            ("recipe", "`algo.type`", "`objective`", "paper", "run file", "what it is"),
            (_recipe(name, ("objective",), folder, examples) for name in given),
        ),
        "## What recipes are made of",
        paragraph(PARTS),
        "\n".join(_parts(folder)),
    )


def _compared(folder: Path) -> str:
    path = folder / COMPARED
    return f"How they learn one task: [{Opening.of(path).title}]({COMPARED})." if path.is_file() else ""


def _recipe(name: str, keys: tuple[str, ...], folder: Path, examples: Path) -> list[str]:
    values: dict[str, Any] = {**Algo().model_dump(), **_of_algo(PRESETS[name])}
    opening = Opening.of(folder / f"{name}.md")
    return [
        f"[{opening.title}]({name}.md)",
        f"`{name}`",
        *(f"`{values[key]}`" for key in keys),
        f"[{opening.paper}](https://arxiv.org/abs/{opening.paper})" if opening.paper else "–",
        _example(name, folder, examples),
        opening.line,
    ]


def _of_algo(preset: Mapping[str, Any]) -> dict[str, Any]:
    return {key.removeprefix("algo."): value for key, value in preset.items()}


def _example(name: str, folder: Path, examples: Path) -> str:
    """A link to the first run file of that recipe, in the order of folders."""
    for file in sorted(examples.rglob("*.toml")):
        if tomllib.loads(file.read_text(encoding="utf-8")).get("algo", {}).get("type") == name:
            return f"[{file.parent.name}/{file.name}]({Path(os.path.relpath(file, folder)).as_posix()})"
    return "–"


def _parts(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.md")):
        if path.name not in (INDEX, COMPARED) and path.stem not in PRESETS:
            opening = Opening.of(path)
            yield f"- [{opening.title}]({path.name}): {opening.line}"
