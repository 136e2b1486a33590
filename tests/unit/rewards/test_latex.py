"""The spelling of mathematical answers, and the box that holds one."""

import doctest

import pytest
from cases import case

from strop.rewards import equality, latex
from strop.rewards.equality import by_text, label_text
from strop.rewards.latex import last_boxed, normal


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(latex).failed == doctest.testmod(equality).failed == 0


def test_the_last_box():
    cases = [
        (r"\boxed{1} and \boxed{2}", "2"),
        (r"\boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"\boxed{a{b{c}}} d}", "a{b{c}}"),
        (r"\boxed {4}", "4"),
        (r"\boxed{\boxed{3}}", "3"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\left\{1\right.}", r"\left\{1\right."),
        (r"\fbox{3}", "3"),
        (r"\boxed{1} \fbox{3}", "1"),
        (r"\boxed{}", ""),
        (r"\boxed{1", None),
        (r"\boxed{1} \boxed{2", None),
        ("the answer is 42", None),
        (r"\boxed{" * 100_000, None),
    ]
    for text, boxed in cases:
        with case(text):
            assert last_boxed(text) == boxed


def test_one_spelling():
    cases = [
        (r"\frac12", r"\frac{1}{2}"),
        (r"\frac1{72}", r"\frac{1}{72}"),
        (r"\frac{a}b", r"\frac{a}{b}"),
        (r"\dfrac{3}{4}", r"\frac{3}{4}"),
        (".7", "0.7"),
        ("0.5", r"\frac{1}{2}"),
        ("3/4", r"\frac{3}{4}"),
        ("3 1/2", r"3\frac{1}{2}"),
        (r"45^\circ", "45"),
        (r"45^{\circ}", "45"),
        (r"\sqrt3", r"\sqrt{3}"),
        (r"\sqrt[3]{2}", r"\sqrt[3]{2}"),
        ("1,234,567", "1234567"),
        ("1{,}234", "1234"),
        ("(1, 200)", "(1,200)"),
        ("{1,200}", "{1,200}"),
        ("1 2", "1 2"),
        ("x = 3", "3"),
        (r"\$5", "5"),
        (r"50\%", "50"),
        (r"5\text{ cm}", "5"),
        (r"\text{east}", "east"),
        (r"\left(1,2\right)", "(1,2)"),
        (r"\leftarrow", r"\leftarrow"),
        ("+4.", "4"),
    ]
    for answer, spelling in cases:
        assert normal(answer) == spelling, answer
        assert normal(spelling) == spelling, answer


def test_what_the_spelling_tells():
    cases = [
        ("1/2", r"\frac12", True),
        ("0.5", "1/2", True),
        (r"\frac{-1}{2}", r"-\frac{1}{2}", True),
        ("2/4", "1/2", False),
        ("8/2", "4", False),
        ("2/4", "2/4", True),
        ("4.0", "4", True),
        ("1,234", "1234", True),
        ("4", "5", False),
        ("3.14", "3", False),
        ("", "4", False),
        ("4", "", False),
        ("", "", False),
        (" ", " ", False),
        ("9" * 1_001, "9", False),
        ("x+1", "1+x", None),
        ("0.333333", "1/3", None),
        (r"50\%", "0.5", None),
        ("1/0", "1", None),
        ("2+2", "4", None),
        ("(1,200)", "1200", None),
    ]
    for answer, label, equal in cases:
        with case(answer, label):
            assert by_text(answer, label, reduced=True) is equal


def test_fractions_that_are_not_reduced_can_be_allowed():
    assert by_text("2/4", "1/2", reduced=False)


def test_labels_of_every_kind_are_read():
    cases = [(42, "42"), (0.5, "0.5"), (r"so \boxed{7}", "7"), ("$x$", "x"), (" 4 ", "4")]
    for label, text in cases:
        assert label_text(label) == text, label


def test_a_label_that_says_nothing_is_refused():
    for label in ["", " $ ", None, True, [4], float("nan")]:
        with case(label), pytest.raises(ValueError, match="is neither text nor a number"):
            label_text(label)
