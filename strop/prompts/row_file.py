"""What every format of data looks like to the reader: numbered rows that are parsed one at a time."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from strop.prompts.rows import Keys


@dataclass(frozen=True, slots=True)
class Row:
    """One row, not yet parsed: a row that cannot be is the reader's to judge."""

    number: int
    """Of the line, from 1, or of the row, from 0: the same whichever slice is taken."""
    where: str
    """For messages: `data.jsonl:17` or `data.parquet:row 16`."""
    parse: Callable[[], Mapping[str, Any]]
    """Its fields; of a table with columns those that were asked for. Raises DataError, opened by `where`."""
    columns: tuple[str, ...] | None = None
    """Every column of the table, where there is one."""


class RowFile(Protocol):
    """A file, or a directory of files that are one table."""

    def count(self) -> int:
        """Rows in it; may read the whole file."""
        ...

    def rows(self, start: int, stop: int | None, keys: Keys) -> Iterator[Row]:
        """Rows from `start` up to `stop`, of which the fields that `keys` names are wanted. Raises DataError
        when the file itself is broken."""
        ...
