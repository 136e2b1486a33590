"""JSONL files, also compressed with gzip: one JSON object a line, blank lines skipped."""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import IO, Any

import msgspec

from strop.errors import DataError, first_line
from strop.prompts.row_file import Row
from strop.prompts.rows import Keys, shown

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class JsonlFile:
    """A `RowFile`; a row's number is that of its line, from 1."""

    path: str

    def count(self) -> int:
        """Lines that are not blank."""
        return sum(1 for _ in self._lines())

    def rows(self, start: int, stop: int | None, keys: Keys) -> Iterator[Row]:  # noqa: ARG002 - reads all fields
        """Lines outside the slice are not parsed."""
        for line, text in islice(self._lines(), start, stop):
            where = f"{self.path}:{line}"
            yield Row(line, where, partial(_parse, text, where))

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        line = 0
        try:
            with self._open() as stream:
                for line, raw in enumerate(stream, start=1):
                    text = raw.removeprefix(_BOM) if line == 1 else raw
                    if text.strip():
                        yield line, text
        except (OSError, EOFError, zlib.error) as caught:
            raise DataError(
                f"{self.path}: cannot be read after line {line}: {first_line(str(caught))}"
            ) from caught

    def _open(self) -> IO[bytes]:
        if self.path.lower().endswith(".gz"):
            return gzip.open(self.path, "rb")  # type: ignore[return-value] # a GzipFile is one
        return open(self.path, "rb")


def _parse(text: bytes, where: str) -> dict[str, Any]:
    try:
        row = msgspec.json.decode(text)
    except msgspec.DecodeError as caught:
        reason = str(caught).removeprefix("JSON is malformed: ")
        if text.strip() == b"[":
            reason = "a list over several lines is not JSONL; write one object a line, as `jq -c '.[]'` does"
        raise DataError(f"{where}: not valid JSON: {reason}") from caught
    if not isinstance(row, dict):
        raise DataError(f"{where}: expected a JSON object, got {shown(row)}")
    return row
