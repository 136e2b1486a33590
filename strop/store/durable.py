"""Files that a crash cannot leave half-written: written aside, flushed to the disk, renamed into place."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from strop.errors import RunError, first_line
from strop.store.json_text import encode


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Around what writes to `path`: when the disk refuses (full, read-only, gone), RunError names it."""
    try:
        yield
    except OSError as caught:
        is_other = caught.filename is not None and Path(caught.filename).parent != path.parent
        other = f" ({caught.filename})" if is_other else ""
        reason = first_line(caught.strerror or str(caught))
        raise RunError(f"{path}: cannot be written: {reason}{other}") from caught


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it takes the place of `path` when the block ends without an error.

    Raises RunError when the disk refuses.
    """
    aside = path.with_name(f".{path.name}.tmp")
    with writing(path):
        try:
            yield aside
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        flush(aside)
        aside.replace(path)
        flush(path.parent)


def write_json(path: Path, value: Any) -> None:
    """Put `value` at `path` as one line of JSON; NaN and infinity become null."""
    with replacing(path) as aside:
        aside.write_bytes(encode(value) + b"\n")


def flush(path: Path) -> None:
    """Block until a file's content, or a directory's names, would survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_tree(directory: Path) -> None:
    """`flush` every file and directory under `directory`, and itself."""
    for path in directory.rglob("*"):
        flush(path)
    flush(directory)
