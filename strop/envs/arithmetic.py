"""Evaluates arithmetic that a model wrote: `+ - * /`, parentheses, decimals. Nothing is ever `eval`ed.

Grammar, by precedence:  sum = product {(+|-) product};  product = signed {(*|/) signed};
signed = {+|-} (number | "(" sum ")")
"""

import re
from fractions import Fraction

_MAX_CHARACTERS = 200
_MAX_DIGITS = 15
_MAX_DEPTH = 20
_TOKEN = re.compile(r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)|(?P<sign>[-+*/()]))")
_SAME = str.maketrans("×÷−", "*/-")


class NotArithmetic(ValueError):
    """The expression cannot be evaluated; the text says why, to the model."""


def evaluate(expression: str) -> Fraction:
    """The exact value.

    Raises NotArithmetic on anything outside the grammar, division by zero, more than 200 characters, 15
    digits in a number or 20 levels of parentheses.

    >>> evaluate("2 * (3 + 4) / -4")
    Fraction(-7, 2)
    """
    if len(expression) > _MAX_CHARACTERS:
        raise NotArithmetic(f"longer than {_MAX_CHARACTERS} characters")
    parser = _Parser(_split(expression.translate(_SAME)))
    value = parser.sum(depth=0)
    parser.expect_end()
    return value


def shown(value: Fraction) -> str:
    """A whole number in full, anything else to 10 significant digits.

    >>> shown(Fraction(-7, 2)), shown(Fraction(84, 2)), shown(Fraction(1, 3))
    ('-3.5', '42', '0.3333333333')
    """
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.10g}"


def _split(expression: str) -> list[str]:
    tokens, end = [], len(expression.rstrip())
    position = 0
    while position < end:
        found = _TOKEN.match(expression, position)
        if found is None:
            raise NotArithmetic(f"cannot read {expression[position:].strip()[:20]!r}")
        number = found["number"]
        if number and len(number.replace(".", "")) > _MAX_DIGITS:
            raise NotArithmetic(f"a number has more than {_MAX_DIGITS} digits")
        tokens.append(number or found["sign"])
        position = found.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens, self._at = tokens, 0

    def sum(self, *, depth: int) -> Fraction:
        value = self._product(depth=depth)
        while (sign := self._take("+", "-")) is not None:
            term = self._product(depth=depth)
            value = value + term if sign == "+" else value - term
        return value

    def expect_end(self) -> None:
        if self._at < len(self._tokens):
            raise NotArithmetic(f"{self._tokens[self._at]!r} is out of place")

    def _product(self, *, depth: int) -> Fraction:
        value = self._signed(depth=depth)
        while (sign := self._take("*", "/")) is not None:
            factor = self._signed(depth=depth)
            if sign == "/" and factor == 0:
                raise NotArithmetic("division by zero")
            value = value * factor if sign == "*" else value / factor
        return value

    def _signed(self, *, depth: int) -> Fraction:
        negative = False
        while (sign := self._take("+", "-")) is not None:
            negative ^= sign == "-"
        value = self._atom(depth=depth)
        return -value if negative else value

    def _atom(self, *, depth: int) -> Fraction:
        if self._take("(") is not None:
            if depth == _MAX_DEPTH:
                raise NotArithmetic(f"more than {_MAX_DEPTH} levels of parentheses")
            value = self.sum(depth=depth + 1)
            if self._take(")") is None:
                raise NotArithmetic("')' is missing")
            return value
        if self._at == len(self._tokens):
            raise NotArithmetic(
                "a number is missing at the end" if self._tokens else "the expression is empty"
            )
        token = self._tokens[self._at]
        if token in "+-*/()":
            raise NotArithmetic(f"a number is missing before {token!r}")
        self._at += 1
        return Fraction(token if token[0] != "." else f"0{token}")

    def _take(self, *wanted: str) -> str | None:
        if self._at < len(self._tokens) and self._tokens[self._at] in wanted:
            self._at += 1
            return self._tokens[self._at - 1]
        return None
