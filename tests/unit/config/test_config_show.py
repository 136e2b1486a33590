"""The printed config is a run file again; the recorded one is the config again."""

import json
import tomllib
from pathlib import Path

import pytest

from strop.cli.config_command import main
from strop.config.load import Loaded, load_config
from strop.config.schema import leaves
from strop.config.show import from_json, keys_text, to_json, to_toml
from strop.config.toml_text import dotted
from strop.errors import ConfigError

RUN = """model = "tiny"
loop.steps = 5
[prompts]
source = "task.py:make"
options = {"a key" = "it's \\"quoted\\"", n = [1, 2.5, {deep = true}], tab = "\\t\\u007f"}
[train.optim]
betas = [0.5, 0.75]
lr = 1e-7
[[eval.datasets]]
name = "dev"
files = ["dev.jsonl"]
[[eval.datasets]]
name = "test"
source = "task.py:make"
n = 8
options = {a = {b = 1}}
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text(RUN)


def load(*flags: str) -> Loaded:
    return load_config([Path("run.toml")], flags)


def test_the_printed_config_loads_as_an_equal_one() -> None:
    loaded = load("--rollout.temperature", "0.7")
    Path("again.toml").write_text(to_toml(loaded))
    again = load_config([Path("again.toml")])
    assert again.config == loaded.config
    assert to_json(again)["values"] == to_json(loaded)["values"]


def test_the_printed_config_says_where_values_come_from() -> None:
    lines = [line.split("  # ") for line in to_toml(load("--seed", "3")).splitlines()]
    origins = {setting.strip(): origin for setting, *rest in lines for origin in rest}
    assert origins['model = "tiny"'] == "run.toml:1"
    assert origins["seed = 3"] == "--seed"
    assert origins["batch_size = 64"] == "batch identity"
    assert origins["# max_tokens is unset"] == "default"
    assert origins["options = {a = {b = 1}}"] == "run.toml:16"


def test_keys_without_effect_are_printed_as_comments() -> None:
    assert "# shuffle = true" in to_toml(load())
    assert "# no effect with prompts.source" in to_toml(load())


def test_the_recorded_config_is_read_back() -> None:
    loaded = load()
    assert from_json(json.loads(json.dumps(to_json(loaded)))) == loaded


def test_a_record_that_this_strop_cannot_read_is_refused() -> None:
    record = to_json(load())
    record["values"]["loop"]["stepps"] = 3
    with pytest.raises(ConfigError, match=r"^config.json: loop.stepps: "):
        from_json(record)
    with pytest.raises(ConfigError, match="format = 2, but this strop reads 1"):
        from_json({"format": 2})


def test_the_command_prints_the_config(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run.toml", "--loop.steps", "9"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["loop"]["steps"] == 9


def test_the_command_lists_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--keys"]) == 0
    printed = capsys.readouterr().out
    assert printed == keys_text()
    assert all(f"{dotted(path)} = " in printed for path, _ in leaves())


def test_every_key_has_a_help() -> None:
    assert [dotted(path) for path, leaf in leaves() if not leaf.help] == []
