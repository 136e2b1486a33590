"""What a reward returned → `Scores`: finite numbers, or `RewardFailed` that says what it was instead."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np

from strop.errors import RewardFailed, boundary, first_line
from strop.sample import Scores, Steps

_EXPECTED = "expected a finite number or Scores"


@runtime_checkable
class Array(Protocol):
    """A NumPy array or a torch tensor: neither is imported to tell."""

    shape: Any

    def item(self) -> object: ...
    def tolist(self) -> object: ...


@dataclass(frozen=True)
class Reading:
    """How what one reward returns is read."""

    what: str
    """Opens every message."""
    score_key: str | None = None
    """Which score of a table is the reward."""
    wants_table: bool = False
    """Whether a reward that returns a bare number fails: `score_key` would have no effect."""

    def one(self, returned: object) -> Scores:
        """Of one sample. Raises RewardFailed."""
        with boundary(RewardFailed, self.what):  # objects of the user's may raise as they are looked at
            return self._scores(returned, f"{self.what}: ", "returned")

    def several(self, returned: object, num: int) -> list[Scores]:
        """Of `num` samples, in order. Raises RewardFailed."""
        with boundary(RewardFailed, self.what):
            return self._several(returned, num)

    def _several(self, returned: object, num: int) -> list[Scores]:
        values = returned.tolist() if isinstance(returned, Array) else returned
        if not isinstance(values, list | tuple):
            raise RewardFailed(f"{self.what}: returned {_shown(returned)}; expected a list of {num} rewards")
        if len(values) != num:
            raise RewardFailed(f"{self.what}: returned {len(values)} rewards for {num} samples")
        return [
            self._scores(value, f"{self.what}: sample {member + 1} of {num}: ", "got")
            for member, value in enumerate(values)
        ]

    def _scores(self, returned: object, place: str, verb: str) -> Scores:
        if isinstance(returned, Scores):
            return self._chosen(returned, place)
        if isinstance(returned, Mapping):
            return self._of_table(returned, place)
        if self.wants_table:
            raise RewardFailed(
                f"{place}{verb} {_shown(returned)}; expected a table of scores with {self.score_key!r} "
                "(reward.score_key)"
            )
        return Scores(_finite(returned, f"{place}{verb}"))

    def _chosen(self, returned: Scores, place: str) -> Scores:
        named = {name: _finite(value, f"{place}{name!r} of Scores") for name, value in returned.named.items()}
        steps = None if returned.steps is None else _finite_steps(returned.steps, place)
        if self.score_key is None or not (named or self.wants_table):
            return Scores(_finite(returned.value, f"{place}Scores.value"), named, steps)
        return Scores(self._picked(named, place), named, steps)

    def _of_table(self, table: Mapping[Any, object], place: str) -> Scores:
        """The numbers of a table; text and other notes in it are not scores, and are left out."""
        named = {
            str(name): _finite(value, f"{place}score {name!r} is")
            for name, value in table.items()
            if _is_number(value) or name == self.score_key
        }
        if self.score_key is None:
            raise RewardFailed(
                f"{place}returned a table of scores; name the one to train on in reward.score_key "
                f"({', '.join(named) or 'it has no numbers'})"
            )
        return Scores(self._picked(named, place), named)

    def _picked(self, named: Mapping[str, float], place: str) -> float:
        assert self.score_key is not None
        if self.score_key not in named:
            raise RewardFailed(
                f"{place}no score {self.score_key!r} (reward.score_key); "
                f"there are: {', '.join(named) or 'none'}"
            )
        return named[self.score_key]


def checked(returned: object, what: str) -> Scores:
    """What one call returned, as scores. Raises RewardFailed."""
    return Reading(what).one(returned)


def _finite_steps(steps: object, place: str) -> Steps:
    if not isinstance(steps, Steps):
        raise RewardFailed(f"{place}Scores.steps is {_shown(steps)}; expected strop.sample.Steps")
    if not isinstance(steps.separator, str) or not steps.separator:
        raise RewardFailed(
            f"{place}Steps.separator is {_shown(steps.separator)}; expected the text behind a step"
        )
    scores = (_finite(score, f"{place}step {number + 1} is") for number, score in enumerate(steps.scores))
    return Steps(tuple(scores), steps.separator)


def _is_number(value: object) -> bool:
    return isinstance(value, Real | np.bool_) or (isinstance(value, Array) and value.shape == ())


def _finite(value: object, where: str) -> float:
    if type(value) is float and math.isfinite(value):  # most are, and to tell an array by its shape is slow
        return value
    if isinstance(value, Array) and tuple(value.shape) == ():
        value = value.item()
    if not isinstance(value, Real | np.bool_):
        raise RewardFailed(f"{where} {_shown(value)}; {_EXPECTED}")
    number = float(value)
    if not math.isfinite(number):
        raise RewardFailed(f"{where} {number}; {_EXPECTED}")
    return number


def _shown(value: object) -> str:
    return f"{type(value).__name__} {first_line(repr(value), 60)}"
