"""Every example is a run that strop understands, whole and without a word wrong."""

from pathlib import Path

import pytest
from pages import ROOT

from strop.config.load import load_config

EXAMPLES = sorted((ROOT / "examples").rglob("*.toml"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_an_example_loads(file: Path) -> None:
    assert load_config([file]).config.name


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_an_example_names_files_that_are_there_or_come_by_flag(file: Path) -> None:
    config = load_config([file]).config
    named = [config.prompts.source, config.reward.fn, config.env.type, config.rollout.generate]
    files = [Path(name.rpartition(":")[0]) for name in named if name and ".py:" in name]
    assert [path for path in files if not path.is_file()] == []
