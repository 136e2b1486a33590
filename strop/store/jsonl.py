"""`Log`: an append-only file of JSON lines that can be cut back to where a checkpoint was taken.

NaN and infinity are written as null, so that every line is JSON for any reader. A line counts once its line
feed is there: what a crash left after the last one is no line.
"""

import os
from pathlib import Path
from typing import Any

import msgspec

from strop.errors import DataError
from strop.store.durable import writing
from strop.store.json_text import encode


class Log:
    """Open for appending; one process writes, any number read. A torn last line is cut off on opening.

    Every method raises RunError when the disk refuses.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with writing(path):
            self._file = path.open(
                "ab", buffering=0
            )  # what the disk refused must not be tried again on close
            self._cut(_whole(path.read_bytes()))

    def append(self, record: dict[str, Any]) -> None:
        """Write one line; readers see it when this returns, a power cut spares it after `sync`."""
        line = encode(record) + b"\n"
        with writing(self.path):
            while line:
                line = line[self._file.write(line) :]

    @property
    def offset(self) -> int:
        """Bytes written so far: where the next line begins."""
        return self._file.tell()

    def sync(self) -> int:
        """Block until everything is on the disk; returns the offset."""
        with writing(self.path):
            os.fsync(self._file.fileno())
        return self.offset

    def truncate(self, offset: int) -> None:
        """Forget what came after `offset`, where a line began."""
        assert offset <= self.offset, f"{self.path}: {offset} is beyond its end"
        with writing(self.path):
            self._cut(offset)

    def close(self) -> None:
        self._file.close()

    def _cut(self, size: int) -> None:
        self._file.truncate(size)
        self._file.seek(size)


def read_log(path: Path) -> list[dict[str, Any]]:
    """Every whole line, in order; none if there is no such file.

    Safe while the log is being written. Raises DataError for a line that is not JSON.
    """
    data = path.read_bytes() if path.exists() else b""
    lines = data[: _whole(data)].splitlines()
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(msgspec.json.decode(line))
        except msgspec.DecodeError as caught:
            raise DataError(f"{path}:{number}: is not JSON: {caught}") from caught
    return records


def _whole(data: bytes) -> int:
    """The length of `data` up to its last line feed."""
    return data.rfind(b"\n") + 1
