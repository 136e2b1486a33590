"""`Finding`: one line of a check, for a person: how it stands, what was looked at, what was found."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    """The run goes on; the text says what it costs."""
    FAIL = "fail"
    """The run cannot go well; the text says the way out."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    level: Level
    about: str
    """A word or two: `template`, `stop 2`, `memory`."""
    text: str

    @property
    def line(self) -> str:
        """As commands print it."""
        return f"{self.level:<5}{self.about:<15} {self.text}"
