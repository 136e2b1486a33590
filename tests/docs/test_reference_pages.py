"""The generated pages say what the code says."""

import fnmatch
import re
from pathlib import Path

import pytest

from strop.config.schema import leaves
from strop.reference.config_page import leaf_name
from strop.reference.pages import PAGES

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference"
FLAGS = (ROOT / "tests/unit/config/flags_of_slime.txt").read_text().split()


def test_a_generated_page_is_current() -> None:
    for name, page in PAGES.items():
        assert (REFERENCE / name).read_text() == page(), f"{name}: run `make docs`"


def test_no_page_is_left_of_what_is_no_longer_generated() -> None:
    assert {path.name for path in REFERENCE.glob("*.md")} == set(PAGES)


def test_every_key_is_on_the_page_once() -> None:
    named = re.findall(r"^- \*\*`([\w.]+)`", (REFERENCE / "config.md").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(leaf_name(path) for path, _ in leaves())


def test_every_flag_of_slime_is_on_the_page() -> None:
    named = re.findall(r"`(--[\w*-]+)`", (REFERENCE / "slime-flags.md").read_text())
    assert [flag for flag in FLAGS if not any(fnmatch.fnmatch(flag, name) for name in named)] == []


@pytest.mark.parametrize("name", ["config.md", "errors.md", "run-directory.md"])
def test_a_page_reads_well_as_plain_text(name: str) -> None:
    lines = (REFERENCE / name).read_text().splitlines()
    assert [line for line in lines if len(line) > 112 and not line.startswith("|")] == []
