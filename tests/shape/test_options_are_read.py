"""Every key of a run is read by the code that acts on it: none is parsed, checked and forgotten."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Literal, get_args, get_origin

from section_types import SECTIONS, Reads

from strop.config.schema import Leaf, children

ROOT = Path(__file__).parents[2]

MENTIONS = re.compile(r"[Cc]onfig|section")
ALLOWED = {
    ("Train", "batch_size"): "the batch identity makes it: rules.py fills it in and refuses any other value",
}
"""Keys that act without being read outside strop/config, each with its reason."""


def acting_files() -> list[tuple[str, ast.Module]]:
    """All of strop but the configuration itself and the pages made from it."""
    files = sorted((ROOT / "strop").rglob("*.py"))
    acting = [path for path in files if path.parts[-2] not in ("config", "reference")]
    texts = [(path.relative_to(ROOT).as_posix(), path.read_text()) for path in acting]
    return [(name, ast.parse(text)) for name, text in texts if MENTIONS.search(text)]


@cache
def read() -> set[tuple[str, str]]:
    return set(Reads().in_files(acting_files()).places)


def keys() -> set[tuple[str, str]]:
    """(section, key) of every leaf but those that have one value: `engine.backend` chooses nothing yet."""
    return {
        (name, key)
        for name, section in SECTIONS.items()
        for key, child in children(section).items()
        if isinstance(child, Leaf)
        and not (get_origin(child.type) is Literal and len(get_args(child.type)) == 1)
    }


def test_every_key_is_read_where_it_acts() -> None:
    assert sorted(keys() - read() - set(ALLOWED)) == []


def test_no_reason_is_left_for_a_key_that_is_read_or_gone() -> None:
    assert sorted((set(ALLOWED) & read()) | (set(ALLOWED) - keys())) == []


def test_a_key_that_nothing_reads_is_found() -> None:
    source = """
class Part:
    _config: "Config | None"

    def __init__(self, section: Reward, loop: Loop):
        self._section, self._loop = section, loop

    def run(self, other):
        for number, row in enumerate(self._config.eval.datasets):
            print(row.name, other.retries)
        rollout, train = self._config.rollout, None
        return self._section.timeout_s + rollout.batch_size

class Other:
    def run(self, part):
        return self._section.concurrency, part._loop.seed
"""
    found = set(Reads().in_files([("part.py", ast.parse(source))]).places)
    assert ("EvalSet", "name") in found
    assert ("Reward", "timeout_s") in found
    assert ("Rollout", "batch_size") in found
    assert ("Loop", "seed") in found
    assert ("Reward", "retries") not in found, "the type of `other` is not known"
    assert ("Reward", "concurrency") not in found, "the field of another class"
