"""The calculator's arithmetic: exact, bounded, and never evaluated as code."""

import doctest
import operator
from contextlib import suppress
from fractions import Fraction

import pytest
from cases import case
from hypothesis import given
from hypothesis import strategies as st

from strop.envs import arithmetic
from strop.envs.arithmetic import NotArithmetic, evaluate, shown


def test_the_examples_in_the_docstrings_hold():
    assert doctest.testmod(arithmetic).failed == 0


def test_values():
    cases = [
        ("6*7", "42"),
        (" 2 + 3 * 4 ", "14"),
        ("(2 + 3) * 4", "20"),
        ("8 / 4 / 2", "1"),
        ("10 - 4 - 3", "3"),
        ("1 / 3", "0.3333333333"),
        ("0.1 + 0.2", "0.3"),
        ("-3 * -2", "6"),
        ("--3", "3"),
        (".5 * 4", "2"),
        ("6 × 7 ÷ 2 − 1", "20"),
        ("999999999999999 * 999999999999999", "999999999999998000000000000001"),
        ("(" * 20 + "1" + ")" * 20, "1"),
    ]
    for expression, answer in cases:
        assert shown(evaluate(expression)) == answer, expression


def test_what_is_not_arithmetic_says_why():
    cases = [
        ("", "the expression is empty"),
        ("1 / 0", "division by zero"),
        ("1 / (2 - 2)", "division by zero"),
        ("1 +", "a number is missing at the end"),
        ("(1 + 2", "')' is missing"),
        ("1 + 2)", "')' is out of place"),
        ("1 2", "'2' is out of place"),
        ("* 2", "a number is missing before '*'"),
        ("()", "a number is missing before ')'"),
        ("2 ** 9", "a number is missing before '*'"),
        ("9 ^ 9", "cannot read '^ 9'"),
        ("1e9", "cannot read 'e9'"),
        ("__import__('os')", "cannot read"),
        ("1" * 16, "a number has more than 15 digits"),
        ("1+" * 100 + "1", "longer than 200 characters"),
        ("(" * 21 + "1" + ")" * 21, "more than 20 levels of parentheses"),
    ]
    for expression, problem in cases:
        with case(expression):
            with pytest.raises(NotArithmetic) as caught:
                evaluate(expression)
            assert str(caught.value).startswith(problem)


OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
trees = st.recursive(
    st.integers(0, 99).map(lambda n: (str(n), Fraction(n))),
    lambda inner: st.tuples(inner, st.sampled_from(sorted(OPERATORS)), inner).map(
        lambda t: (f"({t[0][0]} {t[1]} {t[2][0]})", OPERATORS[t[1]](t[0][1], t[2][1]))
    ),
    max_leaves=8,
)


@given(trees)
def test_nested_expressions_are_exact(tree):
    assert evaluate(tree[0]) == tree[1]


@given(st.text(alphabet="0123456789+-*/(). ", max_size=60))
def test_any_text_has_a_value_or_says_why_not(text):
    with suppress(NotArithmetic):
        assert shown(evaluate(text))
