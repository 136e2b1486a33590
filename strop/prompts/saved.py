"""Directories that Hugging Face `datasets` saved with `save_to_disk`: Arrow streams, read without it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from strop.errors import DataError
from strop.prompts.table import TableFile, readable, trimmed

_STATE, _SPLITS = "state.json", "dataset_dict.json"


@dataclass(frozen=True)
class ArrowShard:
    """A `Shard`: a stream of record batches, mapped into memory."""

    path: Path

    @cached_property
    def schema(self) -> pa.Schema:
        """Of the stream."""
        with self._reader() as reader:
            return reader.schema

    def count(self) -> int:
        """From the batches' headers."""
        return self._num_rows

    @cached_property
    def _num_rows(self) -> int:
        with readable(self.path, kind="an Arrow stream"), self._reader() as reader:
            return sum(batch.num_rows for batch in reader)

    def batches(self, start: int, stop: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Views of the mapped file."""
        with readable(self.path, kind="an Arrow stream"), self._reader() as reader:
            yield from trimmed((batch.select(columns) for batch in reader), start, stop)

    def _reader(self) -> Any:
        with readable(self.path, kind="an Arrow stream"):
            return pa.ipc.open_stream(pa.memory_map(str(self.path)))


def open_saved(path: Path, name: str, *, what: str) -> TableFile | None:
    """The data set in a directory; None if `datasets` saved none there.

    Raises DataError for a directory of several splits, which it names.
    """
    if (path / _SPLITS).is_file():
        splits = _read(path / _SPLITS)["splits"]
        choices = ", ".join(f"{name.rstrip('/')}/{split}" for split in splits)
        raise DataError(f"{what}: the directory holds {len(splits)} splits; name one: {choices}")
    if not (path / _STATE).is_file():
        return None
    files = [path / file["filename"] for file in _read(path / _STATE)["_data_files"]]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise DataError(f"{what}: {path / _STATE} names {missing[0]}, which is not there")
    return TableFile(name, tuple(ArrowShard(file) for file in files))


def _read(path: Path) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes())
    except msgspec.DecodeError as caught:
        raise DataError(f"{path}: not valid JSON: {caught}") from caught
