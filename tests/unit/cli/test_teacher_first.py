"""`algo.teacher.train_first`: a teacher is trained once, goes on where it stopped, and is then left alone."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from strop.cli.teacher_first import train_teacher
from strop.cli.train import main as train_run
from strop.config.load import load_config
from strop.config.tree import Config
from strop.errors import ConfigError, DataError


def config_of(place: Path, *, steps: int = 1) -> Config:
    (place / "teacher.toml").write_text("")
    text = (
        f'model = "tiny"\n[loop]\nsteps = {steps}\n[prompts]\nfiles = ["a"]\n[algo.teacher]\n'
        'model = "./runs/teacher"\ntrain_first = "teacher.toml"\n'
    )
    (place / "run.toml").write_text(text)
    return load_config([place / "run.toml"]).config


def asked(config: Config, code: int = 0) -> tuple[int, list[list[str]]]:
    """The exit code, and what was to be trained."""
    words: list[list[str]] = []

    def train(given: Sequence[str]) -> int:
        words.append(list(given))
        return code

    return train_teacher(config, train, check=lambda _: None), words


def test_a_teacher_that_is_not_there_is_trained_into_its_directory(tmp_path: Path) -> None:
    words = [str(tmp_path / "teacher.toml"), "--store.dir", str(tmp_path / "runs/teacher")]
    assert asked(config_of(tmp_path)) == (0, [words])
    assert asked(config_of(tmp_path), code=130) == (130, [words])


def test_a_teacher_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    config, run = config_of(tmp_path), tmp_path / "runs/teacher"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    _, [words] = asked(config)
    assert words[-1] == "--resume"
    (run / "summary.json").write_text(json.dumps({"status": "finished", "steps": 3}))
    assert asked(config) == (0, [])


def test_a_model_is_a_teacher_as_it_is(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    (tmp_path / "runs/teacher").mkdir(parents=True)
    assert asked(config) == (0, [])


def test_no_teacher_is_trained_for_a_run_that_cannot_begin(tmp_path: Path) -> None:
    checked = []

    def refuse(config: Config) -> None:
        checked.append(config.algo.is_taught)
        raise ConfigError("reward.fn: no such function")

    def never(words: Sequence[str]) -> int:
        raise AssertionError(words)

    with pytest.raises(ConfigError, match="no such function"):
        train_teacher(config_of(tmp_path), never, check=refuse)
    assert checked == [False], "the teacher itself is not looked for"


@pytest.mark.slow
def test_a_hint_that_no_prompt_has_is_told_before_the_teacher_is_trained(
    tmp_path: Path, tiny_dir: Path
) -> None:
    (tmp_path / "data.jsonl").write_text('{"prompt": "a"}\n')
    (tmp_path / "teacher.toml").write_text("")
    path, runs = tmp_path / "run.toml", tmp_path / "runs"
    path.write_text(
        f'model = "{tiny_dir}"\n[loop]\nsteps = 1\n[prompts]\nfiles = ["data.jsonl"]\n'
        '[algo]\ntype = "opd"\n[algo.teacher]\nmodel = "./runs/teacher"\ntrain_first = "teacher.toml"\n'
        'hint_key = "solution"\n'
    )
    with pytest.raises(DataError, match="solution"):
        train_run([str(path), "--store.dir", str(runs / "pupil")])


def test_a_run_of_no_steps_needs_no_teacher(tmp_path: Path) -> None:
    assert asked(config_of(tmp_path, steps=0)) == (0, [])


def test_a_run_file_that_is_missing_is_named(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    (tmp_path / "teacher.toml").unlink()
    with pytest.raises(ConfigError, match=r'^algo\.teacher\.train_first = ".*teacher\.toml": no such file$'):
        asked(config)


@pytest.mark.slow
def test_a_run_that_would_be_its_own_teacher_is_refused_instead_of_begun_without_end(
    tmp_path: Path, tiny_dir: Path
) -> None:
    (tmp_path / "data.jsonl").write_text('{"prompt": "a"}\n')
    path, runs = tmp_path / "run.toml", tmp_path / "runs"
    path.write_text(
        f'model = "{tiny_dir}"\n[loop]\nsteps = 1\n[prompts]\nfiles = ["data.jsonl"]\n'
        '[reward]\nfn = "random"\n[algo.teacher]\nmodel = "./runs/teacher"\ntrain_first = "run.toml"\n'
    )
    with pytest.raises(ConfigError, match="is made by a run that would have to learn from it"):
        train_run([str(path), "--store.dir", str(runs / "pupil")])
    assert not runs.exists()
