"""The built-in rules, case by case."""

import doctest

import pytest
from cases import case

from strop.rewards import rules
from strop.rewards.rules import Format, Regex, exact, first_number
from strop.sample import Sample


def sample(response, label=None):
    return Sample(index=0, group_id=0, prompt_id="p", response=response, label=label)


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(rules).failed == 0


def test_exact():
    cases = [("4", "4", 1), (" 4\n", 4, 1), ("4", " 4 ", 1), ("4.", 4, 0), ("", "4", 0), ("Four", "four", 0)]
    for response, label, worth in cases:
        assert exact(sample(response, label)) == worth, (response, label)


def test_first_number():
    cases = [
        ("It is 52.", 52, 1),
        ("38, or rather 52", 52, 0),
        ("1,234 apples", 1234, 1),
        ("1,234,567.50", "1234567.5", 1),
        ("3.0", 3, 1),
        ("3", "3.0", 1),
        ("007", 7, 1),
        ("52,17", 52, 1),
        ("1,2345", 1, 1),
        ("-5", -5, 1),
        ("x = −5", -5, 1),
        ("5", -5, 0),
        ("10-5", 10, 1),
        ("route-66", 66, 1),
        (".5", 0.5, 1),
        ("5.", 5, 1),
        ("v2.5", "2.5", 1),
        ("$1,000", "1,000", 1),
        ("0.1", 0.1, 1),
        ("1e5", 100000, 0),
        ("٤", 4, 0),
        ("no number", 4, 0),
        ("9" * 30000, 9, 0),
    ]
    for response, label, worth in cases:
        with case(response, label):
            assert first_number(sample(response, label)) == worth


def test_a_label_that_is_no_number_fails_instead_of_scoring_0():
    cases = ["four", "", True, float("nan"), float("inf"), [4], "1e400", "52,17"]
    for label in cases:
        with case(label), pytest.raises(ValueError, match="is not a number"):
            first_number(sample("4", label))


@pytest.mark.parametrize("rule", [exact, first_number, Regex("a")])
def test_a_sample_without_a_label_fails_instead_of_scoring_0(rule):
    with pytest.raises(ValueError, match="prompt 'p' has no label to compare with"):
        rule(sample("a"))


def test_regex():
    cases = [
        (Regex(r"answer: (\w+)"), "the answer: blue, not red", 1),
        (Regex(r"answer: (\w+)"), "the answer: red", 0),
        (Regex(r"answer: (\w+)"), "blue", 0),
        (Regex("blue"), "a blue one", 1),
        (Regex(r"(\w+) or (\w+)", group=2), "red or blue", 1),
        (Regex(r"(?P<colour>\w+)!", group="colour"), "blue!", 1),
        (Regex(r"(red)?|blue"), "blue", 0),
        (Regex("Sure", label=False), "Sure, here", 1),
        (Regex("Sure", label=False), "No", 0),
        (Regex("blue"), "blue" + "x" * 20_000, 0),
    ]
    for rule, response, worth in cases:
        with case(rule, response):
            assert rule(sample(response, "blue")) == worth


def test_format():
    cases = [
        (Format("a+"), " aaa\n", 1),
        (Format("a+"), "aab", 0),
        (Format("a.*b", share=0.5), "a\n\nb", 0.5),
        (Format("a*"), "a" * 20_001, 0),
    ]
    for rule, response, worth in cases:
        assert rule(sample(response)) == worth, (rule, response)
