"""DAPO's reward, with slime's values."""

import doctest

import pytest
from cases import case

from strop.rewards import dapo
from strop.rewards.dapo import Dapo, Verdict, judge, normal_answer
from strop.sample import Sample, Scores


def worth(response, label=42, **options):
    return Dapo(**options)(Sample(index=0, group_id=0, response=response, label=label))


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(dapo).failed == 0


def test_normal_answers():
    cases = [
        ("1,234,567", "1234567"),
        ("100 dollars", "100"),
        ("42<|im_end|>", "42"),
        ("42 <|endoftext|></s>", "42"),
        ("$x = 42$", "42"),
        ("the value $42$ cm", "42"),
        (r"\text{yes}", "yes"),
        (r"\frac12", r"\frac{1}{2}"),
        (r"\sqrt2", r"\sqrt{2}"),
        (r"x \text{and} y", "x,y"),
        (r"90^\circ", "90"),
        ("a square", ""),
    ]
    for answer, normal in cases:
        assert normal_answer(answer) == normal, answer


def test_the_verdict_is_slimes_table():
    cases = [
        ("Answer: 42", Verdict(1.0, True, "42")),
        ("so\nanswer: $42$.", Verdict(1.0, True, "42")),
        ("Answer: 41\nAnswer: 42<|im_end|>", Verdict(1.0, True, "42")),
        ("Answer: 41", Verdict(-1.0, False, "41")),
        ("42", Verdict(-1.0, False, "")),
        ("Answer: 42\n" + "x" * 300, Verdict(-1.0, False, "")),
    ]
    for response, verdict in cases:
        assert judge(response, "42") == verdict, response


def test_right_is_1_and_wrong_is_minus_1_with_named_scores():
    assert worth("Answer: 42") == Scores(1.0, {"score": 1.0, "acc": 1.0})
    assert worth("Answer: 41") == Scores(-1.0, {"score": -1.0, "acc": 0.0})


@pytest.mark.parametrize(
    ("response", "value"), [(r"\boxed{42}", 1), ("Answer: 42", -1), (r"\boxed{42}" + "x" * 100, -1)]
)
def test_the_strict_box(response, value):
    assert worth(response, strict_box=True).value == value


def test_labels_like_whole_numbers():
    for label in [42, 42.0, "42", "42.0", " 42"]:
        assert worth("Answer: 42", label).value == 1, label


def test_a_label_that_is_no_whole_number_fails_instead_of_scoring():
    for label in [None, "x", 42.5, "42.5", True, "nan", [42]]:
        with case(label), pytest.raises(ValueError, match="is not a whole number"):
            worth("Answer: 42", label)
