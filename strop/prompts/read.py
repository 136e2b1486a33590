"""Files of rows → prompts: every row is read and checked before anything runs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from strop.errors import DataError
from strop.plugins import nearest
from strop.prompts.formats import open_rows
from strop.prompts.given import make_given
from strop.prompts.row_file import Row
from strop.prompts.rows import Keys, make_prompt
from strop.prompts.slices import Sliced, parse_slice
from strop.sample import Prompt


@dataclass(frozen=True, slots=True)
class BadRows:
    """Malformed rows that were left out."""

    count: int = 0
    first: str = ""
    """What is wrong with the first of them, with its place."""

    def __add__(self, other: "BadRows") -> "BadRows":
        return BadRows(self.count + other.count, self.first or other.first)


@dataclass(frozen=True, slots=True)
class Read:
    """What the files of one data set hold."""

    prompts: list[Prompt]
    bad: BadRows


def read_prompts(files: Sequence[str], keys: Keys, *, where: str, skip_bad: bool = False) -> Read:
    """The rows of `files`, in order.

    A prompt's id is `<name>:<line or row>`, the name with as many folders before it as tell two files apart;
    a slice does not change it, and a row that is taken twice gets `<name>#2:…`. `where` is the key that named
    the files. Raises DataError at the first row that is wrong, unless `skip_bad`, and when there is no row.
    """
    reader = _Reader(keys, skip_bad)
    sliced = [parse_slice(file, where=where) for file in files]
    names = _short_names([part.path for part in sliced])
    reader.repeated = {name for name, times in Counter(names).items() if times > 1}
    for given, part, name in zip(files, sliced, names, strict=True):
        before = len(reader.prompts)
        for row in _rows(part, keys, what=f"{where} = {given!r}"):
            reader.take(row, name)
        if len(reader.prompts) == before:
            raise DataError(f"{where} = {given!r}: every row is malformed; the first: {reader.first_bad}")
    reader.refuse_absent_fields(files)
    return Read(reader.prompts, BadRows(reader.num_bad, reader.first_bad))


@dataclass(slots=True)
class _Reader:
    keys: Keys
    skip_bad: bool
    prompts: list[Prompt] = field(default_factory=list)
    num_bad: int = 0
    first_bad: str = ""
    repeated: set[str] = field(default_factory=set)
    """Names of files that are listed more than once."""
    _taken: Counter[tuple[str, int]] = field(default_factory=Counter)
    _fields: Counter[str] = field(default_factory=Counter)

    def take(self, row: Row, name: str) -> None:
        """Make a prompt of the row, or count it as malformed."""
        id = self._id(name, row.number)
        try:
            values = row.parse()
            self._fields.update(row.columns or values.keys())
            make = make_given if self.keys.given else make_prompt
            self.prompts.append(make(values, self.keys, id=id, where=row.where, has=row.columns))
        except DataError as caught:
            if not self.skip_bad:
                raise
            self.num_bad += 1
            self.first_bad = self.first_bad or str(caught)

    def refuse_absent_fields(self, files: Sequence[str]) -> None:
        """Raise DataError for a field that was asked for by name and that no row has."""
        for name, key in self.keys.asked_for().items():
            if name not in self._fields:
                raise DataError(
                    f"{key} = {name!r}: no row of {', '.join(files)} has it{nearest(name, self._fields)} "
                    f"(they have {', '.join(map(repr, self._fields))})"
                )

    def _id(self, name: str, number: int) -> str:
        if name in self.repeated:
            self._taken[name, number] += 1
            if self._taken[name, number] > 1:
                return f"{name}#{self._taken[name, number]}:{number}"
        return f"{name}:{number}"


def _rows(part: Sliced, keys: Keys, *, what: str) -> Iterator[Row]:
    """The rows that a file or its slice holds; at least one."""
    file = open_rows(part.path, what=what)
    start, stop = part.bounds(file.count)
    is_empty = True
    for row in file.rows(start, stop, keys) if stop is None or start < stop else ():
        is_empty = False
        yield row
    if is_empty:
        held = file.count()
        raise DataError(
            f"{what}: the slice takes no row; there are {held}" if held else f"{what}: the file holds no rows"
        )


def _short_names(files: Sequence[str]) -> list[str]:
    """The shortest endings of the paths that differ."""
    paths = [Path(file).resolve() for file in files]
    return [_ending(path, set(paths) - {path}) for path in paths]


def _ending(path: Path, others: set[Path]) -> str:
    for length in range(1, len(path.parts)):
        ending = path.parts[-length:]
        if all(other.parts[-length:] != ending for other in others):
            return "/".join(ending)
    return str(path)
