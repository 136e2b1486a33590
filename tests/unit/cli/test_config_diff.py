"""`strop config --diff` names the keys that differ, both values, and where they come from."""

import pytest
from cases import case

from strop.cli.config_command import main
from strop.config.differences import defaults, differences, settings_of
from strop.config.load import load_config
from strop.config.show import to_json
from strop.errors import ConfigError
from strop.store.run_dir import RunDirectory

A = """model = "tiny"
[prompts]
files = ["a.jsonl"]
[reward]
fn = "regex"
options = { pattern = "b", label = false }
[rollout]
batch_size = 4
[loop]
steps = 5
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.toml").write_text(A)
    (tmp_path / "b.toml").write_text(A.replace("= 4", "= 6").replace('"b"', '"c"'))


def changed(*flags, against=()):
    """Key → both values, of `a.toml` with these flags and with those."""
    left, right = (settings_of(load_config(["a.toml"], [*given])) for given in (flags, against))
    return {
        d.key: tuple(side.value if side else "–" for side in (d.left, d.right))
        for d in differences(left, right)
    }


def test_equal_configurations_exit_with_0(capsys):
    assert main(["--diff", "a.toml", "a.toml"]) == 0
    assert capsys.readouterr().out == "no difference between a.toml and a.toml\n"


def test_different_ones_exit_with_1_and_name_values_and_origins(capsys):
    assert main(["--diff", "a.toml", "b.toml"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "rollout.batch_size",
        "  a.toml  4  # a.toml:8",
        "  b.toml  6  # b.toml:8",
        "reward.options.pattern",
        '  a.toml  "b"  # a.toml:6',
        '  b.toml  "c"  # b.toml:6',
        "train.batch_size",
        "  a.toml  32  # batch identity",
        "  b.toml  48  # batch identity",
    ]


def test_a_run_is_compared_with_the_file_it_came_from(tmp_path, capsys):
    loaded = load_config(["a.toml"], ["--loop.steps", "9"])
    RunDirectory.create(tmp_path / "run", "run", config=to_json(loaded)).close()
    assert main(["--diff", "run", "a.toml"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "loop.steps",
        "  run     9  # --loop.steps",
        "  a.toml  5  # a.toml:10",
    ]


def test_one_configuration_is_compared_with_the_defaults(capsys):
    assert main(["--diff", "a.toml"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3:] == ["loop.steps", "  a.toml   5  # a.toml:10", "  default  –"]
    assert [line for line in lines if not line.startswith(" ")] == [
        "model",
        "prompts.files",
        "rollout.batch_size",
        "reward.fn",
        "reward.options.pattern",
        "reward.options.label",
        "loop.steps",
    ]


def test_a_value_that_is_given_as_the_default_is_no_difference():
    assert changed("--train.optim.lr", "1e-6") == {}
    assert "train.optim.lr" not in {
        d.key for d in differences(settings_of(load_config(["a.toml"], ["--lr", "1e-6"])), defaults())
    }


def test_a_data_set_that_only_one_has_is_told_by_what_was_given_of_it():
    assert changed("--eval-prompt-data", "dev", "d.jsonl", "--eval-temperature", "0.5") == {
        "eval.datasets.0.name": ("dev", "–"),
        "eval.datasets.0.files": ([f"{load_config(['a.toml']).config.prompts.files[0][:-7]}d.jsonl"], "–"),
        "eval.datasets.0.temperature": (0.5, "–"),
    }


def test_a_data_set_that_both_have_is_compared_key_by_key():
    sets = ("--eval-prompt-data", "dev", "a.jsonl")
    assert changed(*sets, "--eval-temperature", "0.5", against=sets) == {
        "eval.datasets.0.temperature": (0.5, 0.0)
    }


def test_what_cannot_be_compared_is_one_line():
    cases = [
        ("--diff", "strop config --diff: expected one or two run files or run directories, got 0"),
        (
            "--diff a.toml b.toml a.toml",
            "strop config --diff: expected one or two run files or run directories, got 3",
        ),
        ("--diff a.toml --loop.steps 3", "--loop.steps: unknown flag of strop config --diff; it has --diff"),
        ("--diff a.toml c.toml", "c.toml: no such file; there is a.toml, b.toml"),
        ("--diff .", ". is not a run directory: it has no run.json; name the directory of a run"),
        ("a.toml --dif", "--dif: unknown flag; did you mean --diff?"),
    ]
    for words, line in cases:
        with case(words):
            with pytest.raises(ConfigError) as error:
                main(words.split())
            assert str(error.value).startswith(line)
