"""Help is help wherever it is asked for, and makes nothing."""

import pytest

from strop.cli.main import COMMANDS, main


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("words", [["--help"], ["tiny", "--help"], ["a", "b", "-h"]])
def test_help_anywhere_prints_the_usage_and_makes_nothing(command, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STROP_HOME", str(tmp_path / "home"))
    assert main([command, *words]) == 0
    assert f"strop {command}" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
