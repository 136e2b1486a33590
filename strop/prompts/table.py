"""Tables in Arrow's memory → rows of plain Python: what Parquet files and saved data sets have in common."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pyarrow as pa

from strop.errors import DataError, first_line
from strop.prompts.row_file import Row
from strop.prompts.rows import Keys, shown

_CHUNK = 1024
"""Rows that are Python objects at once, beside the prompts made of them."""

Convert = Callable[[Any], Any]


class Shard(Protocol):
    """One file of a table."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of its columns."""
        ...

    def count(self) -> int:
        """Rows in it, without reading them."""
        ...

    def batches(self, start: int, stop: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """These columns of rows `start` to `stop`, in pieces of any size."""
        ...


@dataclass(frozen=True, slots=True)
class TableFile:
    """A `RowFile` of one or several shards; rows are counted from 0 through all of them."""

    name: str
    """As the user named it."""
    shards: tuple[Shard, ...]

    def count(self) -> int:
        """Rows of all shards."""
        return sum(shard.count() for shard in self.shards)

    def rows(self, start: int, stop: int | None, keys: Keys) -> Iterator[Row]:
        """Only the columns that `keys` names are read, a thousand rows at a time."""
        before = 0
        for shard in self.shards:
            count = shard.count()
            first, last = max(start - before, 0), count if stop is None else min(stop - before, count)
            if first < last:
                yield from self._rows_of(shard, first, last, keys=keys, before=before)
            before += count

    def _rows_of(self, shard: Shard, first: int, last: int, *, keys: Keys, before: int) -> Iterator[Row]:
        schema = shard.schema
        every, wanted = tuple(schema.names), [name for name in keys.columns() if name in schema.names]
        converts = {
            name: _converter(schema.field(name).type, sparse=name in keys.sparse()) for name in wanted
        }
        number = before + first
        for batch in shard.batches(first, last, wanted):
            for begin in range(0, batch.num_rows, _CHUNK):
                for values in batch.slice(begin, _CHUNK).to_pylist():
                    where = f"{self.name}:row {number}"
                    yield Row(number, where, partial(_plain_row, values, converts, where), every)
                    number += 1


def trimmed(batches: Iterable[pa.RecordBatch], start: int, stop: int) -> Iterator[pa.RecordBatch]:
    """Rows `start` to `stop` of what all batches hold together."""
    before = 0
    for batch in batches:
        first, last = max(start - before, 0), min(stop - before, batch.num_rows)
        if first < last:
            yield batch.slice(first, last - first)
        before += batch.num_rows
        if before >= stop:
            return


@contextmanager
def readable(path: Path, *, kind: str) -> Iterator[None]:
    """What pyarrow makes of a broken file becomes a DataError with its name."""
    try:
        yield
    except (pa.ArrowException, OSError) as caught:
        raise DataError(f"{path}: cannot be read as {kind}: {first_line(str(caught))}") from caught


def _plain_row(values: Mapping[str, Any], converts: Mapping[str, Convert], where: str) -> dict[str, Any]:
    plain = {}
    for name, value in values.items():
        try:
            plain[name] = converts[name](value)
        except msgspec.DecodeError as caught:
            raise DataError(f"{where}: {name!r} is not valid JSON: {caught}") from caught
        _refuse_unholdable(plain[name], what=f"{where}: {name!r}")
    return plain


def _converter(kind: Any, *, sparse: bool) -> Convert:
    """From Arrow's Python values of one type to plain ones.

    `sparse`: an empty field of a struct is left out. Arrow gives every message of a column the fields of
    them all, and templates ask whether a field is there.
    """
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.json":
            return lambda text: None if text is None else msgspec.json.decode(text)
        return _converter(kind.storage_type, sparse=sparse)
    if pa.types.is_map(kind):
        item = _converter(kind.item_type, sparse=sparse)
        return lambda pairs: pairs and {key: item(value) for key, value in pairs}
    if pa.types.is_struct(kind):
        fields = {field.name: _converter(field.type, sparse=sparse) for field in kind}
        return partial(_struct, fields, sparse)
    if pa.types.is_nested(kind) and not pa.types.is_union(kind):
        element = _converter(kind.value_type, sparse=sparse)
        return lambda values: values and [element(value) for value in values]
    return lambda value: value


def _struct(fields: Mapping[str, Convert], sparse: bool, value: dict[str, Any] | None) -> Any:
    if value is None:
        return None
    plain = {name: fields[name](inner) for name, inner in value.items()}
    return {name: inner for name, inner in plain.items() if inner is not None} if sparse else plain


def _refuse_unholdable(value: object, *, what: str) -> None:
    """Raise DataError for a value that samples could not be stored with."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _refuse_unholdable(name if not isinstance(name, str) else inner, what=what)
    elif isinstance(value, list):
        for inner in value:
            _refuse_unholdable(inner, what=what)
    elif isinstance(value, float):
        if not isfinite(value):
            raise DataError(f"{what} holds {value}, which JSON cannot hold; fill it in, or leave the row out")
    elif value is not None and not isinstance(value, str | int):
        raise DataError(
            f"{what} holds {shown(value)}, which JSON cannot hold; store the column as text or numbers"
        )
