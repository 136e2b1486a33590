"""Multiple choice: which letter a response settles on, and what is the right one."""

import doctest

import pytest
from cases import case

from strop.rewards import choices
from strop.rewards.choices import chosen, gpqa
from strop.sample import Sample

LETTERS = ["A", "B", "C", "D"]


def worth(response, label, **metadata):
    return gpqa(Sample(index=0, group_id=0, response=response, label=label, metadata=metadata))


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(choices).failed == 0


def test_the_letter_of_a_response():
    cases = [
        ("Answer: B", "B"),
        ("The answer is C.", "C"),
        ("the final answer is (d)", "D"),
        ("I choose option B", "B"),
        ("Choice: A", "A"),
        ("(B) is correct", "B"),
        ("C is the correct one", "C"),
        (r"So \boxed{\text{B}}", "B"),
        ("**Answer:** D", "D"),
        ("Answer: A. No: answer: B", "B"),
        ("<think>Answer: A</think> Answer: B", "B"),
        ("It must be between A and C", "C"),
        ("The answer is an apple", None),
        ("It is I who'd know; E", None),
        ("nothing here", None),
        ("", None),
        (None, None),
    ]
    for response, letter in cases:
        assert chosen(response, LETTERS) == letter, response


def test_only_letters_of_a_choice_count():
    assert chosen("Answer: C", ["A", "B"]) is None
    assert worth("Answer: C, or else B", "B", valid_letters=["A", "B"]) == 1


def test_gpqa():
    cases = [
        ("Answer: B", "B", {}, 1),
        ("Answer: B", "b", {}, 1),
        ("Answer: A", "B", {}, 0),
        ("Answer: B", 1, {}, 1),
        ("Answer: B", 1, {"choices": ["red", "blue"]}, 1),
        ("Answer: B", "blue", {"choices": ["red", "blue"]}, 1),
        ("Answer: B", "blue", {"choices": {"A": "red", "B": "blue"}}, 1),
        ("Answer: B", "A", {"correct_letter": "B"}, 1),
        ("Answer: B", None, {"correct_letter": "b"}, 1),
        ("surely Blue!", "B", {"choices": ["red", "blue"]}, 1),
        ("surely bluebells", "B", {"choices": ["red", "blue"]}, 0),
        ("surely paris", "Paris", {}, 1),
        ("nothing", "B", {}, 0),
        ("", "B", {}, 0),
    ]
    for response, label, metadata, value in cases:
        assert worth(response, label, **metadata) == value, (response, label, metadata)


def test_a_label_that_names_no_choice_fails_instead_of_scoring_0():
    for label in [None, 9, 1.5, [1]]:
        with case(label), pytest.raises(ValueError, match="neither a letter"):
            worth("Answer: B", label)
