"""`Outlet`: a text file to show things on, whose reader may go away (`strop train … | head`)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


class Outlet:
    """`file`, without its errors: what cannot be written is dropped, what its encoding lacks is shown as `?`.

    Has what rich asks of a file.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.encoding = file.encoding

    def write(self, text: str) -> int:
        with self._whatever_happens():
            try:
                self._file.write(text)
            except UnicodeEncodeError:
                self._file.write(text.encode(self.encoding, "replace").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        with self._whatever_happens():
            self._file.flush()

    def isatty(self) -> bool:
        return self._file.isatty()

    def fileno(self) -> int:
        return self._file.fileno()

    @contextmanager
    def _whatever_happens(self) -> Iterator[None]:
        with suppress(OSError, ValueError):  # ValueError: the file is closed
            try:
                yield
            except BrokenPipeError:
                let_go(self._file)


def let_go(file: TextIO) -> None:
    """Turn the descriptor of a file without a reader to nowhere: the interpreter flushes standard output once
    more as it exits, and a failure then would be the exit code."""
    with suppress(OSError), open(os.devnull, "wb") as nowhere:  # OSError: the file has no descriptor
        os.dup2(nowhere.fileno(), file.fileno())
