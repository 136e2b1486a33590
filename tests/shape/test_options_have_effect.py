"""Every key, changed, changes what a run says, and the change is the one that its table declares."""

from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest
from options import CHANGES, ELSEWHERE, Change
from run_parts import lay_out, parts

from strop.config.load import load_config
from strop.config.schema import leaves
from strop.config.toml_text import dotted

CHOICES = {dotted([part for part in path if part != 0]): leaf.type for path, leaf in leaves()}
ROOT = Path(__file__).parents[2]


def has_one_value(kind: object) -> bool:
    return get_origin(kind) is Literal and len(get_args(kind)) == 1


def test_every_key_is_in_the_table() -> None:
    keys = {key for key, kind in CHOICES.items() if not has_one_value(kind)}
    assert sorted(keys - set(CHANGES) - set(ELSEWHERE)) == []
    assert sorted((set(CHANGES) | set(ELSEWHERE)) - keys) == []


def test_a_change_is_of_the_key_that_it_is_listed_under() -> None:
    def names(key: str, change: Change) -> bool:
        flags = change.flags.replace(".0.", ".")
        return f"--{key} " in f"{flags} " or f"--{key}." in flags or change.flags in ("--prompts.files []",)

    assert [key for key, change in CHANGES.items() if not names(key, change)] == []


def test_what_is_tested_elsewhere_is() -> None:
    def is_tested(key: str, place: Path) -> bool:
        return place.is_file() and key.split(".")[-1] in place.read_text()

    places = {key: ROOT / reason.split(":")[0] for key, reason in ELSEWHERE.items()}
    assert [key for key, place in places.items() if not is_tested(key, place)] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "value"), [("project", "other"), ("group", "other"), ("entity", "other"), ("mode", "online")]
)
def test_a_setting_of_wandb_reaches_it(key: str, value: str, tmp_path: Path) -> None:
    from strop.telemetry.wandb import arguments  # takes a second, with wandb

    (tmp_path / "run.json").write_text('{"format": 1, "started": "now"}')
    base = ["--model=tiny", "--loop.steps=1", "--prompts.files=/a", "--telemetry.sinks=wandb"]
    told = arguments(tmp_path, load_config([], [*base, f"--telemetry.wandb.{key}", value]).config)
    assert told[key] == value


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from strop.nn.tiny import make_tiny

    made = tmp_path_factory.mktemp("options")
    lay_out(made, make_tiny)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("key", CHANGES)
def test_a_key_changed_changes_what_it_says(key: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    change = CHANGES[key]
    before = parts(change.file, change.both)
    after = parts(change.file, f"{change.both} {change.flags}".strip())
    assert before.get(change.says) != after.get(change.says), (before["error"], after["error"])
