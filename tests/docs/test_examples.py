"""Every example is a run that strop understands, whole and without a word wrong."""

import re
from pathlib import Path

import pytest
from pages import ROOT

from strop.config.load import load_config
from strop.config.tree import Config

EXAMPLES = sorted((ROOT / "examples").rglob("*.toml"))
FILES = pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.relative_to(ROOT).as_posix())


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Loads an example; the variables of the environment that its paths begin with are set."""

    def load_example(file: Path) -> Config:
        for variable in re.findall(r"\$\{(\w+)\}", file.read_text()):
            monkeypatch.setenv(variable, str(tmp_path))
        return load_config([file]).config

    return load_example


@FILES
def test_an_example_loads(file: Path, load) -> None:
    assert load(file).name


@FILES
def test_the_functions_of_an_example_are_beside_it(file: Path, load) -> None:
    config = load(file)
    named = [config.prompts.source, config.reward.fn, config.env.type, config.rollout.generate]
    named += [*config.rollout.hooks, config.rollout.keep]
    files = [Path(part) for name in named if name for part in name.split(":") if part.endswith(".py")]
    assert [path for path in files if not path.is_file()] == []


@FILES
def test_an_example_opens_with_what_it_is_for(file: Path) -> None:
    assert file.read_text().startswith("# ")
