"""Grade-school problems: real solutions are right, and the same off by one are wrong."""

import doctest
import json
import os
from pathlib import Path

import pytest
from cases import case

from strop.rewards import gsm8k as module
from strop.rewards.gsm8k import gsm8k
from strop.sample import Sample


def worth(response, label):
    return gsm8k(Sample(index=0, group_id=0, response=response, label=label))


@pytest.fixture(scope="module")
def solutions():
    """Of the whole test set."""
    if "STROP_DATA" not in os.environ:
        pytest.skip("STROP_DATA is unset: it names the directory that holds gsm8k/test.jsonl")
    rows = (Path(os.environ["STROP_DATA"]) / "gsm8k" / "test.jsonl").read_text().splitlines()
    return [json.loads(row)["answer"] for row in rows]


def off_by(solution, step):
    body, _, number = solution.rpartition("####")
    return body, int(number.replace(",", "")) + step


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(module).failed == 0


def test_every_solution_of_the_test_set_is_right(solutions):
    assert len(solutions) == 1319
    assert [s for s in solutions if worth(s, s) != 1] == []


def test_every_solution_of_the_test_set_off_by_one_is_wrong(solutions):
    stated = [(*off_by(solution, 1), solution) for solution in solutions]
    assert [s for body, n, s in stated if worth(f"{body}#### {n:,}", s) or worth(f"It is ${n}.", s)] == []


def test_every_answer_of_the_test_set_is_right_in_a_sentence(solutions):
    said = [(f"So they have ${off_by(solution, 0)[1]:,}.00 left.", solution) for solution in solutions]
    assert [solution for response, solution in said if worth(response, solution) != 1] == []


def test_gsm8k():
    cases = [
        ("#### 1,200", 1),
        ("#### $1200.00 in all, of 5", 1),
        ("first 5, then 1200%", 1),
        ("1200 apples, 5 pears", 0),
        ("#### 5\n#### 1200", 1),
        ("1200\n####", 1),
        ("#### -1200", 0),
        ("no number", 0),
        ("", 0),
        ("1" * 30_000, 0),
    ]
    for response, value in cases:
        with case(response):
            assert worth(response, "300 * 4 = 1200\n#### 1,200") == value


def test_labels_of_every_kind_are_read():
    for label in [1200, 1200.0, "1,200", "#### 1,200.", "#### $1200"]:
        assert worth("1200", label) == 1, label


def test_a_label_that_is_no_number_fails_instead_of_scoring_0():
    for label in ["#### four", "four", None, True, "#### "]:
        with case(label), pytest.raises(ValueError, match="is not a number"):
            worth("1200", label)
