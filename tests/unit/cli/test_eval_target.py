"""What `strop eval` evaluates, and with which settings; nothing is loaded yet."""

import shutil
from pathlib import Path

import pytest
from cases import case

from strop.cli.eval_target import open_target
from strop.cli.evaluate import main
from strop.config.load import load_config
from strop.config.show import to_json
from strop.errors import ConfigError
from strop.nn.tiny import make_tiny
from strop.store.run_dir import RunDirectory

ROWS = '{"prompt": "ab", "label": "b"}\n{"prompt": "cd", "label": "d"}\n'


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STROP_HOME", str(tmp_path / "home"))
    (tmp_path / "rows.jsonl").write_text(ROWS)


RUN_FLAGS = [
    *("--model", "tiny", "--loop.steps", "4", "--prompts.files", "gone.jsonl", "--train.optim.warmup", "2"),
    *("--eval-prompt-data", "letters", "rows.jsonl", "--rollout.max_response_tokens", "8"),
]


@pytest.fixture
def run(tmp_path, tiny_dir):
    """One with checkpoints after 2 and 4 steps."""
    loaded = load_config([], RUN_FLAGS)
    with RunDirectory.create(tmp_path / "run", "run", config=to_json(loaded)) as run:
        for step in (2, 4):
            run.write_checkpoint(
                step,
                fill=lambda path: shutil.copytree(tiny_dir, path, dirs_exist_ok=True),
                state={},
                keep=2,
            )
    return run.path


def opened(*names, flags="", step=None):
    return open_target(
        [Path(name) for name in names], flags.split(), step=step, own=["--out", "--json", "--step"]
    )


def test_a_run_is_its_last_checkpoint_with_its_own_sets(run):
    target = opened(run)
    config = target.loaded.config
    assert (target.step, config.model) == (4, str(run / "checkpoints/step-4"))
    assert [section.name for section in config.eval.datasets] == ["letters"]
    assert config.rollout.max_response_tokens == 8


def test_an_earlier_checkpoint_is_named_by_its_step(run):
    assert opened(run, step=2).loaded.config.model.endswith("/checkpoints/step-2")


def test_flags_override_what_the_run_was_given(run):
    flags = "--eval.datasets.0.temperature 0.6 --eval.datasets.0.samples_per_prompt 4"
    loaded = opened(run, flags=flags).loaded
    (section,) = loaded.config.eval.datasets
    assert (section.temperature, section.samples_per_prompt, section.name) == (0.6, 4, "letters")
    assert loaded.origins["eval.datasets.0.temperature"] == "--eval.datasets.0.temperature"
    assert loaded.origins["rollout.max_response_tokens"] == "--rollout.max_response_tokens"


def test_other_sets_replace_those_of_the_run(run):
    loaded = opened(run, flags="--eval-prompt-data a rows.jsonl b rows.jsonl --eval-temperature 0.5").loaded
    assert [(s.name, s.temperature) for s in loaded.config.eval.datasets] == [("a", 0.5), ("b", 0.5)]


def test_prompts_that_the_run_was_trained_on_need_not_be_there(run):
    config = opened(run).loaded.config
    assert (config.prompts.files, config.loop.steps) == ([], 0)


def test_a_model_is_evaluated_on_the_sets_of_flags(tmp_path):
    make_tiny(tmp_path / "mine")
    target = opened(tmp_path / "mine", flags="--eval-prompt-data letters rows.jsonl")
    assert (target.step, target.loaded.config.model) == (None, str(tmp_path / "mine"))
    assert opened("tiny", flags="--eval-prompt-data letters rows.jsonl").loaded.config.model == "tiny"


WRONG = {
    "nowhere --eval-prompt-data a rows.jsonl": "strop eval nowhere: is not a run directory; as a model:",
    "runz": "strop eval runz: is not a run directory; as a model:",
    "tiny": "without prompts and without eval.datasets leaves nothing to do; add --eval-prompt-data",
    "tiny tiny": "strop eval: expected one run or model, got tiny tiny",
    "--eval-prompt-data a rows.jsonl": "strop eval: name a run directory, a model or a run file, before",
    "tiny --step 2": "--step 2: tiny is not a run directory; leave it out",
    "run --step 3": "--step 3: run keeps no checkpoint of it; kept: 2, 4",
    "run --step two": "--step: expected a whole number of at least 0, got two",
    "run --setp 2": "--setp: unknown flag; did you mean --step?",
    "run --eval.datasets.0.temperture 1": "unknown",
    "run --eval.datasets.1.temperature 1": "eval.datasets has no number 1: it has 1, counted from 0",
    "run --out run": "--out run already exists; choose another directory",
    "run --json=yes": "--json: takes no value, got yes",
    "run --out": "--out: needs a value",
    "run --lr 3": "--lr: train.optim.lr has no effect on an evaluation; remove it",
}


def test_what_cannot_be_evaluated_is_one_line(run):
    for words, line in WRONG.items():
        with case(words):
            with pytest.raises(ConfigError) as error:
                main(words.split())
            assert line in str(error.value)
            assert "\n" not in str(error.value)
