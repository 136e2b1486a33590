"""What the end-to-end tests share: a shell, and one run that nobody interrupted."""

from pathlib import Path

import pytest
from processes import Shell, warm_up

from strop.nn.tiny import make_tiny

HERE = Path(__file__).parent


def pytest_collection_finish(session: pytest.Session) -> None:
    """The seconds that torch takes to import pass while other tests run."""
    if any(item.path.parent == HERE for item in session.items):
        warm_up()


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Commands whose `model = "tiny"` is there."""
    home = tmp_path_factory.mktemp("home")
    make_tiny(home / "models" / "tiny")
    return Shell(home, tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="session")
def whole(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of `run.toml`, uninterrupted."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    ended = shell.run("train", HERE / "run.toml", "--store.dir", path)
    assert ended.code == 0, ended.err
    return path
