"""`${NAME}` at the beginning of a path that names data."""

from pathlib import Path

import pytest

from strop.config.load import load_config
from strop.errors import ConfigError

RUN = """model = "tiny"
loop.steps = 1
prompts.files = ["${DATA}/train.jsonl@[:9]", "local.jsonl"]
[[eval.datasets]]
name = "dev"
files = ["${DATA}/dev.parquet"]
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.delenv("DATA", raising=False)
    file = tmp_path / "run.toml"
    file.write_text(RUN)
    return file


def test_a_variable_becomes_its_value_and_the_path_is_recorded_from_the_root(run, monkeypatch):
    monkeypatch.setenv("DATA", "/mnt/data")
    config = load_config([run]).config
    assert config.prompts.files == ["/mnt/data/train.jsonl@[:9]", str(run.parent / "local.jsonl")]
    assert config.eval.datasets[0].files == ["/mnt/data/dev.parquet"]


def test_a_relative_value_starts_from_the_working_directory(run, monkeypatch):
    monkeypatch.setenv("DATA", "here")
    assert load_config([run]).config.prompts.files[0] == str(Path.cwd() / "here/train.jsonl@[:9]")


def test_flags_take_variables_too(run, monkeypatch):
    monkeypatch.setenv("DATA", "/mnt/data")
    config = load_config([run], ["--prompts.files", "${DATA}/other.jsonl"]).config
    assert config.prompts.files == ["/mnt/data/other.jsonl"]


def test_an_unset_variable_is_named_with_its_place_and_both_ways_out(run):
    with pytest.raises(ConfigError) as caught:
        load_config([run])
    assert str(caught.value) == (
        f'{run}:3: prompts.files = ["${{DATA}}/train.jsonl@[:9]", "local.jsonl"]: the environment variable '
        "DATA is not set; run `DATA=/path strop …`, or give --prompts.files (and 1 more)"
    )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "${DATA}/a",
            "the environment variable DATA is empty; run `DATA=/path strop …`, or give --prompts.files",
        ),
        ("${}/a", "begins with ${, but not with a variable; write ${DATA}/…, or give --prompts.files"),
        ("${DATA", "begins with ${, but not with a variable"),
    ],
)
def test_a_variable_that_names_nothing_is_one_line(run, monkeypatch, path, message):
    monkeypatch.setenv("DATA", "")
    with pytest.raises(ConfigError) as caught:
        load_config([], ["--model", "tiny", "--loop.steps", "1", "--prompts.files", path])
    assert f'--prompts.files: prompts.files = ["{path}"]: {message}' in str(caught.value)


def test_plugins_and_models_take_no_variable(run, monkeypatch):
    monkeypatch.setenv("DATA", "/mnt/data")
    config = load_config([run], ["--reward.fn", "${DATA}/r.py:f"]).config
    assert config.reward.fn.endswith("/${DATA}/r.py:f")
