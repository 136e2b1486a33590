"""Parquet files, alone or as the shards of one table, read row group by row group."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from strop.errors import DataError
from strop.prompts.table import TableFile, readable, trimmed

_SHARD = re.compile(r"(?P<table>.+)-(?P<number>\d{5})-of-(?P<of>\d{5})(-[0-9a-f]+)?\.parquet")
_SPLITS = {"train", "test", "validation", "valid", "val", "dev", "eval"}
"""Names that mean different data, where files carry nothing but a name."""


@dataclass(frozen=True)
class ParquetShard:
    """A `Shard`. Its metadata is read once, its rows as often as they are asked for."""

    path: Path

    @cached_property
    def _metadata(self) -> pq.FileMetaData:
        with readable(self.path, kind="Parquet"):
            return pq.read_metadata(self.path)

    @property
    def schema(self) -> pa.Schema:
        """In Arrow's types."""
        with readable(self.path, kind="Parquet"):
            return self._metadata.schema.to_arrow_schema()

    def count(self) -> int:
        """From the file's footer."""
        rows: int = self._metadata.num_rows
        return rows

    def batches(self, start: int, stop: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Row groups outside the slice are not touched."""
        groups, skipped, before = [], 0, 0
        for group in range(self._metadata.num_row_groups):
            end = before + self._metadata.row_group(group).num_rows
            if end <= start:
                skipped = end
            elif before < stop:
                groups.append(group)
            before = end
        with readable(self.path, kind="Parquet"), pq.ParquetFile(self.path, memory_map=True) as file:
            batches = file.iter_batches(row_groups=groups, columns=columns, use_threads=False)
            yield from trimmed(batches, start - skipped, stop - skipped)


def open_parquet(path: Path, name: str) -> TableFile:
    """One file."""
    return TableFile(name, (ParquetShard(path),))


def open_shards(path: Path, name: str, *, what: str) -> TableFile | None:
    """`data/train` → the table of `data/train-00000-of-00002.parquet` and its like; None without any."""
    files = [file for file in path.parent.glob("*.parquet") if _table_of(file) == path.name]
    return _whole(files, name, what=what) if files else None


def open_directory(path: Path, name: str, *, what: str) -> TableFile | None:
    """All Parquet files of a directory as one table; None without any.

    Raises DataError when they are several tables, such as `train-…` and `test-…`.
    """
    files = sorted(path.glob("*.parquet"))
    if not files:
        return None
    tables = {_table_of(file) or (file.name if file.stem in _SPLITS else "") for file in files}
    if len(tables) > 1:
        choices = ", ".join(f"{name.rstrip('/')}/{table}" for table in sorted(tables - {""}))
        raise DataError(f"{what}: the directory holds several tables; name one of {choices}")
    return _whole(files, name, what=what)


def _whole(files: list[Path], name: str, *, what: str) -> TableFile:
    """The table, unless a part of it is missing: half of a download is no data set."""
    found = [match for match in (_SHARD.fullmatch(file.name) for file in sorted(files)) if match]
    missing = {int(match["of"]) for match in found} - {len(found)}
    if missing:
        raise DataError(
            f"{what}: {len(found)} of {missing.pop()} shards are there "
            f"({', '.join(match[0] for match in found[:3])}…); fetch the others"
        )
    return TableFile(name, tuple(ParquetShard(file) for file in sorted(files)))


def _table_of(file: Path) -> str:
    match = _SHARD.fullmatch(file.name)
    return match["table"] if match else ""
