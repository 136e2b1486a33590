"""No key and no flag, misspelt by one letter, is ever taken for something else."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.config import slime
from strop.config.load import load_config
from strop.config.schema import leaves, resolve, slime_flags
from strop.config.slime_flags import ANSWERS, names
from strop.config.toml_text import dotted
from strop.errors import ConfigError

KEYS = [dotted(path) for path, _ in leaves() if 0 not in path]
FLAGS = [
    *(f"--{dotted(path)}" for path, _ in leaves()),
    *slime_flags(),
    *slime.EARLY,
    *slime.LATE,
    *(name for answer in ANSWERS if answer.holds for name in answer.flags.split()),
]
LETTERS = string.ascii_lowercase + string.digits + "._-"
BASE = ["--model=tiny", "--loop.steps=5", "--prompts.files=/a"]


@st.composite
def one_edit(draw: st.DrawFn, words: list[str]) -> str:
    """A word with one letter removed, changed, added or swapped with the next."""
    word = draw(st.sampled_from(words))
    at = draw(st.integers(0, len(word) - 1))
    letter = draw(st.sampled_from(LETTERS))
    swapped = word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :]
    edits = [
        word[:at] + word[at + 1 :],
        word[:at] + letter + word[at + 1 :],
        word[:at] + letter + word[at:],
        swapped,
    ]
    return draw(st.sampled_from([edit for edit in edits if edit != word] or [word + "x"]))


@settings(max_examples=80, deadline=None)
@given(one_edit(FLAGS), st.sampled_from([[], ["1"], ["true"], ["x"]]))
def test_a_misspelt_flag_is_refused(flag: str, values: list[str]) -> None:
    is_right = flag in FLAGS or flag in names() or resolve(flag.removeprefix("--").split("."))
    if not is_right or not flag.startswith("--"):
        with pytest.raises(ConfigError) as caught:
            load_config([], [flag, *values, *BASE])
        assert "\n" not in str(caught.value)


@settings(max_examples=80, deadline=None)
@given(one_edit(KEYS), st.sampled_from(["1", "true", "'x'", "[]"]))
def test_a_misspelt_key_is_refused(tmp_path_factory: pytest.TempPathFactory, key: str, value: str) -> None:
    if key not in KEYS and not resolve(key.split(".")):
        file = tmp_path_factory.getbasetemp() / "typo.toml"
        file.write_text(f"{key} = {value}\n")
        with pytest.raises(ConfigError, match=r"typo.toml:1: "):
            load_config([file], BASE)


@pytest.mark.parametrize(
    "flag", ["--loop.step", "--loop", "--num-roll", "--Loop.Steps", "--loop.steps.x", "--no-colocate"]
)
def test_nothing_is_abbreviated(flag: str) -> None:
    with pytest.raises(ConfigError, match=f"^{flag}: "):
        load_config([], [*BASE, flag, "1"])
