"""The F1 of words, with slime's values."""

import doctest

import pytest

from strop.rewards import words
from strop.rewards.words import Overlap, f1, normal_words, overlap
from strop.sample import Sample


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(words).failed == 0


def test_case_punctuation_and_articles_do_not_count():
    assert normal_words("The Quick Brown Fox.") == "quick brown fox"


def test_precision_recall_and_f1():
    assert overlap("quick fox", "quick brown fox") == pytest.approx(Overlap(0.8, 1.0, 2 / 3))


def test_f1():
    cases = [
        ("yes", "yes", 1),
        ("yes", "no", 0),
        ("yes it is", "yes", 0),
        ("noanswer", "no answer", 0),
        ("cat", "dog", 0),
        ("", "dog", 0),
        ("the", "the", 0),
        ("cat cat", "cat", pytest.approx(2 / 3)),
        ("7", 7, 1),
    ]
    for response, label, value in cases:
        assert f1(Sample(index=0, group_id=0, response=response, label=label)) == value, (response, label)


def test_a_sample_without_a_label_fails_instead_of_scoring_0():
    with pytest.raises(ValueError, match="has no label"):
        f1(Sample(index=0, group_id=0, response="a"))
