"""Help is help wherever it is asked for, and makes nothing."""

import itertools

from cases import case

from strop.cli.main import COMMANDS, main


def test_help_anywhere_prints_the_usage_and_makes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STROP_HOME", str(tmp_path / "home"))
    for command, words in itertools.product(COMMANDS, (["--help"], ["tiny", "--help"], ["a", "b", "-h"])):
        with case(command, words):
            assert main([command, *words]) == 0
            assert f"strop {command}" in capsys.readouterr().out
            assert list(tmp_path.iterdir()) == []
