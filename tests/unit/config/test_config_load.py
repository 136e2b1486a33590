"""Layers, origins, paths and types of a configuration that is right."""

import subprocess
import sys
from pathlib import Path

import pytest

from strop.config.flags import split_arguments
from strop.config.load import Loaded, load_config
from strop.config.rules import batch_size
from strop.config.tree import Config, Loop, Rollout, Train

BASE = 'model = "tiny"\n[loop]\nsteps = 5\n[prompts]\nfiles = ["a.jsonl"]\n'


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(text: str, *flags: str) -> Loaded:
    Path("run.toml").write_text(BASE + text)
    return load_config([Path("run.toml")], flags)


def test_later_files_replace_earlier_ones_and_flags_replace_files() -> None:
    Path("more.yaml").write_text("loop:\n  steps: 6\n  seed: 1\ntrain: {optim: {lr: 1e-5}}\n")
    Path("run.toml").write_text(BASE + "[rollout]\ntemperature = 1")
    loaded = load_config([Path("run.toml"), Path("more.yaml")], ["--loop.seed", "7"])
    assert (loaded.config.loop.steps, loaded.config.loop.seed) == (6, 7)
    assert loaded.config.train.optim.lr == 1e-5
    assert loaded.config.rollout.temperature == 1.0
    assert loaded.origins["loop.steps"] == "more.yaml:2"
    assert loaded.origins["loop.seed"] == "--loop.seed"
    assert loaded.origins["train.optim.lr"] == "more.yaml:4"
    assert loaded.origins["rollout.temperature"] == "run.toml:7"
    assert loaded.origins["rollout.batch_size"] == "default"


def test_every_leaf_has_an_origin() -> None:
    origins = load("[[eval.datasets]]\nname = 'dev'\nfiles = ['a']\n[reward.options]\npattern = 'x'").origins
    assert origins["eval.datasets.0.name"] == "run.toml:7"
    assert origins["eval.datasets.0.temperature"] == "default"
    assert origins["reward.options.pattern"] == "run.toml:10"
    assert "reward.options" not in origins
    assert origins["env.options"] == "default"
    assert origins["train.batch_size"] == "batch identity"


def test_toml_lines_survive_every_kind_of_string_and_table() -> None:
    text = """[reward.options]
first = '''
[not.a.table]
x = 1'''
second = \"\"\"a \\\"\"\" b
\"\"\"
third = [ # ]
  "[",
  {a = 1, b = '}'},
]
"four th" = 4
optim.lr = 5
[train]
optim.lr = 1e-5
[[eval.datasets]]
name = "one"
files = ["x"]
[[eval.datasets]]
name = "two"
source = "m:f"
n = 3
[eval.datasets.options]
depth = 2
"""
    origins = load(text).origins
    lines = {
        key: int(origin.split(":")[1]) for key, origin in origins.items() if origin.startswith("run.toml")
    }
    assert lines == {
        "model": 1,
        "loop.steps": 3,
        "prompts.files": 5,
        "reward.options.first": 7,
        "reward.options.second": 10,
        "reward.options.third": 12,
        'reward.options."four th"': 16,
        "reward.options.optim.lr": 17,
        "train.optim.lr": 19,
        "eval.datasets.0.name": 21,
        "eval.datasets.0.files": 22,
        "eval.datasets.1.name": 24,
        "eval.datasets.1.source": 25,
        "eval.datasets.1.n": 26,
        "eval.datasets.1.options.depth": 28,
    }


def test_yaml_lines_are_those_of_the_keys() -> None:
    Path("run.yaml").write_text(
        "model: tiny\nprompts:\n  files:\n    - a\neval:\n  datasets:\n    - name: dev\n      files: [b]\n"
        "env: {options: &o {a: 1}}\nreward:\n  options:\n    <<: *o\n    b: 2\nloop: {steps: 5}\n"
    )
    origins = load_config([Path("run.yaml")]).origins
    assert origins["prompts.files"] == "run.yaml:3"
    assert origins["eval.datasets.0.files"] == "run.yaml:8"
    assert origins["reward.options.a"] == "run.yaml:9"
    assert origins["reward.options.b"] == "run.yaml:13"


def test_files_are_relative_to_the_run_file_and_flags_to_the_working_directory() -> None:
    Path("sub").mkdir()
    Path("sub/run.toml").write_text(BASE + '[reward]\nfn = "my.py:f"\n[rollout]\nkeep = "m.n:f"\n')
    config = load_config([Path("sub/run.toml")], ["--env.type", "../e.py:E"]).config
    assert config.prompts.files == [str(Path.cwd() / "sub/a.jsonl")]
    assert config.reward.fn == f"{Path.cwd()}/sub/my.py:f"
    assert config.rollout.keep == "m.n:f"
    assert config.env.type == f"{Path.cwd().parent}/e.py:E"


@pytest.mark.parametrize("name", ["tiny", "smollm2-135m"])
def test_a_short_model_name_stays_and_a_path_is_made_absolute(name: str) -> None:
    assert load("", "--model", name).config.model == name
    assert load("", "--model", f"./{name}").config.model == str(Path.cwd() / name)


def test_flag_values_are_read_as_the_type_of_their_key() -> None:
    config = load(
        "shuffle = true\nmax_tokens = 9\n[rollout]\nkeep = 'reward_std'",
        *("--prompts.shuffle", "false", "--prompts.chat_template", "--prompts.max_tokens=none"),
        *("--rollout.keep", "none", "--rollout.stop_token_ids", "[3,4]", "--train.optim.betas", "0.5", "0.6"),
        *("--prompts.files", "/a", "/b", "--name", "12", "--train.optim.clip", "2"),
    ).config
    assert (config.prompts.shuffle, config.prompts.chat_template, config.prompts.max_tokens) == (
        False,
        True,
        None,
    )
    assert (config.rollout.keep, config.rollout.stop_token_ids) == (None, [3, 4])
    assert (config.prompts.files, config.name) == (["/a", "/b"], "12")
    assert (config.train.optim.betas, config.train.optim.clip) == ((0.5, 0.6), 2.0)


def test_options_on_the_command_line_are_toml_or_text() -> None:
    cases = [
        ("3", 3),
        ("\\d+", "\\d+"),
        ("true", True),
        ('"3"', "3"),
        ("[1, 2]", [1, 2]),
        ('{"a": 1}', {"a": 1}),
        ("{a = 1}", {"a": 1}),
        ("007", "007"),
        ("1 # x", "1 # x"),
        ("a=b", "a=b"),
        ("2024-01-01", "2024-01-01"),
    ]
    for text, value in cases:
        assert load("", f"--reward.options.it={text}").config.reward.options == {"it": value}, text


def test_tables_of_options_merge_and_an_empty_one_clears() -> None:
    text = "[reward.options]\na = 1\nb = {c = 2}"
    assert load(text, "--reward.options.b.d", "3").config.reward.options == {"a": 1, "b": {"c": 2, "d": 3}}
    assert load(text, "--reward.options.b", "3").config.reward.options == {"a": 1, "b": 3}
    assert load(text, "--reward.options", "{}").config.reward.options == {}


def test_lists_of_tables_are_replaced_as_a_whole_and_refined_by_number() -> None:
    text = (
        "[[eval.datasets]]\nname = 'dev'\nfiles = ['/d']\n[[eval.datasets]]\nname = 'test'\nfiles = ['/t']\n"
    )
    assert [row.n for row in load(text, "--eval.datasets.1.n", "9").config.eval.datasets] == [None, 9]
    assert [
        row.name for row in load(text, "--eval.datasets", "[{name='x',files=['a']}]").config.eval.datasets
    ] == ["x"]
    assert load(text, "--eval.datasets", "[]").config.eval.datasets == []


def test_batch_size_follows_from_the_batch_identity() -> None:
    assert load("[train]\nupdates_per_step = 2").config.train.batch_size == 32
    config = Config(
        model="tiny", loop=Loop(steps=1), rollout=Rollout(batch_size=3, samples_per_prompt=4), train=Train()
    )
    assert batch_size(config) == 12


def test_run_files_come_before_the_flags() -> None:
    assert split_arguments(["a.toml", "b.yaml", "--lr", "1"]) == (
        [Path("a.toml"), Path("b.yaml")],
        ["--lr", "1"],
    )
    assert split_arguments([]) == ([], [])


def test_loading_a_config_imports_nothing_heavy() -> None:
    code = "import sys, strop.config.load, strop.config.show, strop.cli.config_command; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"torch", "transformers", "pyarrow", "ray", "aiohttp"} & set(loaded)


def test_a_function_in_reward_weights_was_looked_for_in_the_working_directory() -> None:
    Path("sub").mkdir()
    text = """[reward]
weights = { exact = 1.0, "mine.py:brief" = 0.5 }
[reward.options."mine.py:brief"]
most = 3
"""
    Path("sub/run.toml").write_text(BASE + text)
    loaded = load_config([Path("sub/run.toml")], [])
    spec = f"{Path('sub/mine.py').absolute()}:brief"
    assert loaded.config.reward.weights == {"exact": 1.0, spec: 0.5}
    assert loaded.config.reward.options == {spec: {"most": 3}}
    assert loaded.origins[f'reward.options."{spec}".most'] == "sub/run.toml:9"
