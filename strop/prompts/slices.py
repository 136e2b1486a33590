"""`path@[a:b]`: which rows of a file are taken. Rows count from 0, bounds mean what they mean in Python."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from strop.errors import DataError

_SLICED = re.compile(r"(?P<path>.+)@\[(?P<inside>[^\[\]]*)\]", re.DOTALL)
_BOUNDS = re.compile(r"\s*(-?[0-9]{1,15})?\s*:\s*(-?[0-9]{1,15})?\s*")
_EXAMPLES = "give @[a:b] with whole numbers, such as @[:1000] or @[-100:]"


@dataclass(frozen=True, slots=True)
class Sliced:
    """A path, and the rows of it that are taken."""

    path: str
    start: int | None = None
    stop: int | None = None

    def bounds(self, count: Callable[[], int]) -> tuple[int, int | None]:
        """The first row, and the one behind the last; None: to the end. Rows are counted, which may need the
        whole file to be read, only for a negative bound."""
        if (self.start or 0) >= 0 and (self.stop or 0) >= 0:
            return self.start or 0, self.stop
        start, stop, _ = slice(self.start, self.stop).indices(count())
        return start, stop


def parse_slice(given: str, *, where: str) -> Sliced:
    """A path with or without a slice. Raises DataError for a slice that is not one.

    >>> parse_slice("train.jsonl@[-100:]", where="prompts.files")
    Sliced(path='train.jsonl', start=-100, stop=None)
    """
    found = _SLICED.fullmatch(given)
    if not found:
        return Sliced(given)
    bounds = _BOUNDS.fullmatch(found["inside"])
    if not bounds:
        problem = (
            f"a slice has no step; {_EXAMPLES}"
            if found["inside"].count(":") == 2
            else f"'@[{found['inside']}]' is not a slice; {_EXAMPLES}"
        )
        raise DataError(f"{where} = {given!r}: {problem}")
    start, stop = (None if bound is None else int(bound) for bound in bounds.groups())
    return Sliced(found["path"], start, stop)
