"""The example tasks: right answers, the same on every machine, and splits that cannot meet."""

import re
from pathlib import Path

import pytest

from strop.config.tree import Prompts
from strop.plugins import resolve
from strop.prompts.open import open_prompts
from strop.randomness import generator

EXAMPLES = Path(__file__).parents[3] / "examples"
TASKS = {"numbers": "largest_number", "first_run": "find_digit"}


def spec(example):
    return f"{EXAMPLES}/{example}/task.py:{TASKS[example]}"


def load(example):
    return resolve(spec(example), key="prompts.source", names={}, group="strop.prompts")


def texts(example, split, n):
    fn = load(example)
    return [fn(generator(0, i), split=split)["prompt"] for i in range(n)]


def test_largest_number_is_worded_exactly_so():
    prompt = texts("numbers", "train", 1)[0]
    assert re.fullmatch(
        r"Which is the largest number: \d\d, \d\d or \d\d\? Answer with just the number\.", prompt
    )


def test_largest_number_is_the_label():
    for i in range(200):
        task = load("numbers")(generator(0, i), split="held_out")
        numbers = [int(n) for n in re.findall(r"\d+", task["prompt"])]
        assert len(set(numbers)) == 3
        assert task["label"] == max(numbers)


@pytest.mark.slow
def test_number_sets_of_the_splits_are_disjoint_whatever_their_order():
    sets = {
        split: {frozenset(re.findall(r"\d+", text)) for text in texts("numbers", split, 5000)}
        for split in ("train", "held_out")
    }
    assert len(sets["train"]) > 4000
    assert not sets["train"] & sets["held_out"]


def test_found_digit_is_the_label():
    for i in range(200):
        task = load("first_run")(generator(0, i), split="train")
        assert re.sub("[a-z]", "", task["prompt"]) == task["label"]
        assert len(task["prompt"]) == 3


@pytest.mark.slow
def test_digit_texts_of_the_splits_are_disjoint():
    assert not set(texts("first_run", "train", 5000)) & set(texts("first_run", "held_out", 5000))


def test_about_one_set_of_numbers_in_five_is_held_out():
    is_held_out = load("numbers").__globals__["is_held_out"]
    sets = [generator(1, i).sample(range(10, 100), 3) for i in range(2000)]
    assert 0.17 < sum(map(is_held_out, sets)) / len(sets) < 0.23


@pytest.mark.parametrize("example", TASKS)
def test_tasks_and_ids_are_reproducible(example):
    section = Prompts(source=spec(example), options={"split": "train"}, seed=3)
    one, two = open_prompts(section).source.next(50), open_prompts(section).source.next(50)
    assert one == two
    assert len({p.id for p in one}) == 50


@pytest.mark.parametrize("example", TASKS)
def test_another_split_is_refused(example):
    with pytest.raises(ValueError, match="got 'test'"):
        load(example)(generator(0), split="test")
