"""Every example is a run that strop understands, whole and without a word wrong."""

import re
from pathlib import Path

import pytest
from cases import case
from pages import ROOT

from strop.config.load import load_config
from strop.config.tree import Config

EXAMPLES = sorted((ROOT / "examples").rglob("*.toml"))


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Loads an example; the variables of the environment that its paths begin with are set."""

    def load_example(file: Path) -> Config:
        for variable in re.findall(r"\$\{(\w+)\}", file.read_text()):
            monkeypatch.setenv(variable, str(tmp_path))
        return load_config([file]).config

    return load_example


def test_an_example_loads(load) -> None:
    for file in EXAMPLES:
        with case(file.relative_to(ROOT)):
            assert load(file).name


def test_the_functions_of_an_example_are_beside_it(load) -> None:
    for file in EXAMPLES:
        with case(file.relative_to(ROOT)):
            config = load(file)
            named = [config.prompts.source, config.reward.fn, config.env.type, config.rollout.generate]
            named += [*config.rollout.hooks, config.rollout.keep]
            files = [Path(part) for name in named if name for part in name.split(":") if part.endswith(".py")]
            assert [path for path in files if not path.is_file()] == []


def test_an_example_opens_with_what_it_is_for() -> None:
    assert [file for file in EXAMPLES if not file.read_text().startswith("# ")] == []
