"""Whether two mathematical answers are equal: by spelling, by value, and only then by mathematics."""

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from strop.rewards.latex import last_boxed, normal
from strop.rewards.workers import Workers
from strop.sample import Prompt

WORKER = Path(__file__).with_name("math_worker.py")
_LONGEST = 1_000
"""Characters of an answer; a longer one is no answer."""
_NEAR = Fraction(1, 10_000)
"""Numbers further apart than this are different, however they are rounded."""
_RATIO = re.compile(r"([+-]?)(?:\\frac\{([+-]?)([0-9]+)\}\{([0-9]+)\}|([0-9]+))")
_DECIMAL = re.compile(r"[+-]?[0-9]+\.[0-9]+")


@dataclass(frozen=True)
class Verdict:
    """On an answer."""

    is_equal: bool
    timed_out: bool = False
    """The answer could not be compared within the limits of a worker: it is not equal."""


@dataclass(frozen=True)
class Equality:
    """Compares answers. What only mathematics can tell is told in a process with limits."""

    workers: Workers
    reduced: bool
    """Whether an answer must be worked out: neither 2/4 for 1/2, nor 2+2 for 4."""

    async def __call__(self, answer: str, label: str) -> Verdict:
        """Raises RewardFailed when the processes fail; never because of an answer."""
        told = by_text(answer, label, reduced=self.reduced)
        if told is not None:
            return Verdict(told)
        reply = await self.workers.ask({"answer": answer, "label": label, "reduced": self.reduced})
        return Verdict(False, timed_out=True) if reply is None else Verdict(reply["equal"])


def by_text(answer: str, label: str, *, reduced: bool) -> bool | None:
    """Whether they are equal, as far as spelling and plain numbers tell; None when only mathematics can.

    >>> by_text("0.5", "1/2", reduced=True), by_text("2/4", "1/2", reduced=True)
    (True, False)
    """
    if not label.strip() or not answer.strip() or len(answer) > _LONGEST:
        return False
    given, expected = normal(answer), normal(label)
    if given == expected:
        return True
    return _by_value(given, expected, reduced=reduced, is_exact="%" not in answer + label)


def _by_value(given: str, expected: str, *, reduced: bool, is_exact: bool) -> bool | None:
    value, of_label = _value(given), _value(expected)
    if value is None or of_label is None or not is_exact:
        return None
    ratio = _ratio(given)
    if value != of_label:
        both_exact = ratio is not None and _ratio(expected) is not None
        return False if both_exact or abs(value - of_label) > _NEAR else None
    return not reduced or ratio is None or math.gcd(*ratio) == 1 or ratio == _ratio(expected)


def _ratio(text: str) -> tuple[int, int] | None:
    """Numerator and denominator of an integer or a plain fraction, as they are written."""
    found = _RATIO.fullmatch(text)
    if found is None:
        return None
    sign, inner, top, bottom, whole = found.groups(default="")
    value = int(top or whole) * (-1 if (sign == "-") != (inner == "-") else 1)
    return (value, int(bottom or 1)) if int(bottom or 1) else None


def _value(text: str) -> Fraction | None:
    if _DECIMAL.fullmatch(text):
        return Fraction(text)
    ratio = _ratio(text)
    return Fraction(*ratio) if ratio else None


def label_text(label: object) -> str:
    """A label as an answer: text, with or without its box, or a number. Raises ValueError."""
    if isinstance(label, str):
        boxed = last_boxed(label)
        text = label if boxed is None else boxed
        if text.strip(" $"):
            return text.strip().removeprefix("$").removesuffix("$")
    elif isinstance(label, int | float) and not isinstance(label, bool) and math.isfinite(label):
        return str(label)
    raise ValueError(f"label {label!r} is neither text nor a number")


def check_label(prompt: Prompt) -> None:
    """Raises ValueError unless answers can be compared with the prompt's label."""
    label_text(prompt.label)
