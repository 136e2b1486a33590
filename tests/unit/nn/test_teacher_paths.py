"""A teacher is a model that scores the policy's ids: any other is refused by name, before a run begins."""

import json
import shutil
from pathlib import Path

import pytest

from strop.config.algo import Algo
from strop.config.teacher import OneTeacher, Teacher
from strop.errors import ConfigError
from strop.nn.teacher_paths import teacher_paths
from strop.nn.tiny import make_tiny


def of(model: object, **keys: str) -> Algo:
    return Algo(teacher=Teacher(model=str(model), **keys))


def test_teachers_are_in_the_order_of_the_configuration_and_the_policy_is_none(
    tmp_path: Path, tiny_dir: Path
) -> None:
    other = make_tiny(tmp_path / "other", seed=9, hidden=32)
    assert teacher_paths(of(other), tiny_dir) == (other,)
    rows = [OneTeacher(model="policy"), OneTeacher(model=str(other)), OneTeacher(model=str(tiny_dir))]
    assert teacher_paths(Algo(teachers=rows), tiny_dir) == (None, other, tiny_dir)


def test_a_teacher_of_another_vocabulary_is_refused(tmp_path: Path, tiny_dir: Path, monkeypatch) -> None:
    monkeypatch.setattr("strop.nn.tiny.VOCABULARY", 272)
    larger = make_tiny(tmp_path / "larger")
    expected = (
        rf'^algo\.teacher\.model = "{larger}" has 272 ids and the policy 264, so that their distributions'
    )
    with pytest.raises(ConfigError, match=expected):
        teacher_paths(of(larger), tiny_dir)


def test_a_teacher_of_another_tokenizer_is_refused(tmp_path: Path, tiny_dir: Path) -> None:
    other = Path(shutil.copytree(tiny_dir, tmp_path / "other"))
    (other / "tokenizer_config.json").write_text("{}")
    (other / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"a": 0}}}))
    expected = rf'^algo\.teachers\.0\.model = "{other}" has another tokenizer than the policy, '
    with pytest.raises(ConfigError, match=expected):
        teacher_paths(Algo(teachers=[OneTeacher(model=str(other))]), tiny_dir)


def test_a_teacher_that_is_nowhere_is_refused_by_its_key(tiny_dir: Path) -> None:
    with pytest.raises(
        ConfigError, match=r'^algo\.teacher\.model = "/nowhere", as a model: model = "/nowhere" is not a'
    ):
        teacher_paths(of("/nowhere"), tiny_dir)
    with pytest.raises(
        ConfigError, match=r'^algo\.teacher\.model = "/nowhere" is not there yet; strop train makes it'
    ):
        teacher_paths(of("/nowhere", train_first="/run.toml"), tiny_dir)


def test_a_run_without_a_checkpoint_teaches_nobody(tmp_path: Path, tiny_dir: Path) -> None:
    (tmp_path / "run.json").write_text('{"format": 1}')
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(
        ConfigError, match="is a run without a checkpoint; let it finish, or name another model"
    ):
        teacher_paths(of(tmp_path), tiny_dir)
