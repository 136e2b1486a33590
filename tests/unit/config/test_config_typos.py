"""No key and no flag, misspelt by one letter, is ever taken for something else."""

import string
from pathlib import Path

import pytest
from cases import case
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.config import slime
from strop.config.load import load_config
from strop.config.schema import leaves, resolve, slime_flags
from strop.config.slime_flags import ANSWERS, answer_for, names
from strop.config.toml_text import dotted
from strop.errors import ConfigError

ROW_TABLES = ("prompts.mixture", "eval.datasets")
KEYS = [dotted(path) for path, _ in leaves() if 0 not in path]
ROW_KEYS = [
    (table, dotted(path).removeprefix(f"{table}.0."))
    for table in ROW_TABLES
    for path, _ in leaves()
    if dotted(path).startswith(f"{table}.0.")
]
SETTING = [*(f"--{dotted(path)}" for path, _ in leaves()), *slime_flags(), *slime.EARLY, *slime.LATE]
FLAGS = [*SETTING, *(name for answer in ANSWERS if answer.holds for name in answer.flags.split())]
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


def is_right(flag: str) -> bool:
    """The edit made another flag of it, or one of a family that is answered by its beginning."""
    number = any(part.isdecimal() for part in flag.split("."))  # of a row: that there is none is said
    return flag in FLAGS or flag in names() or bool(resolve(flag.removeprefix("--").split("."))) or number


@settings(max_examples=40, deadline=None)
@given(one_edit(FLAGS), st.sampled_from([[], ["1"], ["true"], ["x"]]))
def test_a_misspelt_flag_is_refused(flag: str, values: list[str]) -> None:
    if not is_right(flag) or not flag.startswith("--"):
        with pytest.raises(ConfigError) as caught:
            load_config([], [flag, *values, *BASE])
        assert "\n" not in str(caught.value)
        assert "did you mean" in str(caught.value) or flag[:1] != "-" or answer_for(flag)


@settings(max_examples=30, deadline=None)
@given(one_edit(SETTING))
def test_a_misspelt_flag_is_no_value_of_the_list_before_it(flag: str) -> None:
    if not is_right(flag) and len(flag) > 4:
        with pytest.raises(ConfigError, match=r"unknown flag; did you mean --|: .*; remove the flag"):
            load_config([], [*BASE, "--rollout-stop", "a", flag, "1"])


@settings(max_examples=40, deadline=None)
@given(one_edit(KEYS), st.sampled_from(["1", "true", "'x'", "[]"]))
def test_a_misspelt_key_is_refused(tmp_path_factory: pytest.TempPathFactory, key: str, value: str) -> None:
    if key not in KEYS and not resolve(key.split(".")):
        refuses(tmp_path_factory, f"{key} = {value}\n", r"typo.toml:1: ")


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(ROW_TABLES), st.data())
def test_a_misspelt_key_of_a_row_is_refused(
    tmp_path_factory: pytest.TempPathFactory, table: str, data: st.DataObject
) -> None:
    right = [key for of, key in ROW_KEYS if of == table]
    key = data.draw(one_edit([key for key in right if len(key) > 1]))
    # With a dot it is no other key: `n.me` is the key `n` with a table as its value.
    if key not in right and "." not in key:
        refuses(tmp_path_factory, f"[[{table}]]\n{key} = 1\n", r"typo.toml:2: ")


@pytest.mark.parametrize("table", ROW_TABLES)
def test_a_misspelt_list_of_tables_is_refused(table: str, tmp_path: Path) -> None:
    file = tmp_path / "typo.toml"
    file.write_text(f"[[{table[:-1]}]]\nname = 'a'\n")
    with pytest.raises(ConfigError, match=rf"is unknown; did you mean {table}\?"):
        load_config([file], BASE)


def refuses(places: pytest.TempPathFactory, text: str, match: str) -> None:
    file = places.getbasetemp() / "typo.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=match) as caught:
        load_config([file], BASE)
    assert (
        "did you mean" in str(caught.value)
        or "the keys here are" in str(caught.value)
        or "TOML" in str(caught.value)
    )


def test_nothing_is_abbreviated() -> None:
    cases = ["--loop.step", "--loop", "--num-roll", "--Loop.Steps", "--loop.steps.x", "--no-colocate"]
    for flag in cases:
        with case(flag), pytest.raises(ConfigError, match=f"^{flag}: "):
            load_config([], [*BASE, flag, "1"])


def test_a_word_with_one_dash_is_a_flag_and_a_number_is_none() -> None:
    with pytest.raises(ConfigError, match=r"^-seed: unknown flag; did you mean --seed\?"):
        load_config([], [*BASE, "--rollout-stop", "a", "-seed", "3"])
    assert load_config([], [*BASE, "--rollout-top-k", "-1"]).config.rollout.top_k == -1
    assert load_config([], [*BASE, "--rollout-stop=-end"]).config.rollout.stop == ["-end"]


def test_a_row_has_one_number() -> None:
    rows = ["--eval-prompt-data", "dev", "a.jsonl"]
    with pytest.raises(ConfigError, match=r"^--eval.datasets.00.n: unknown flag"):
        load_config([], [*BASE, *rows, "--eval.datasets.00.n", "3"])
