"""JSONL files → prompts: every row is read and checked when the file is opened, before anything runs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from strop.errors import DataError
from strop.plugins import nearest
from strop.prompts.rows import Keys, make_prompt, shown
from strop.sample import Prompt

_BOM = b"\xef\xbb\xbf"
_OTHER_FORMATS = {".parquet", ".csv", ".tsv", ".arrow", ".gz", ".zst"}


def read_jsonl(files: Sequence[str], keys: Keys, *, where: str) -> list[Prompt]:
    """The rows of `files`, in order; blank lines are skipped.

    A prompt's id is `<file name>:<line>`, with as many folders before it as tell two files of one name
    apart. `where` is the key that named the files. Raises DataError at the first row that is wrong, or when
    there is no row at all.
    """
    prompts: list[Prompt] = []
    fields: Counter[str] = Counter()
    for file, name in zip(files, _short_names(files), strict=True):
        before = len(prompts)
        for line, row in _rows(file, where=where):
            fields.update(row.keys())
            prompts.append(make_prompt(row, keys, id=f"{name}:{line}", where=f"{file}:{line}"))
        if len(prompts) == before:
            raise DataError(f"{where} = {file!r}: the file holds no rows")
    for key, field in keys.asked_for().items():
        if field not in fields:
            raise DataError(
                f"prompts.{key} = {field!r}: no row of {', '.join(files)} has it{nearest(field, fields)} "
                f"(they have {', '.join(map(repr, fields))})"
            )
    return prompts


def _rows(file: str, *, where: str) -> Iterator[tuple[int, dict[str, Any]]]:
    path = Path(file)
    if path.suffix in _OTHER_FORMATS:
        raise DataError(f"{where} = {file!r}: {path.suffix} files are not supported yet; expected JSONL")
    if not path.is_file():
        if path.is_dir():
            raise DataError(f"{where} = {file!r}: is a directory, expected a JSONL file")
        near = sorted(p.name for p in path.parent.iterdir()) if path.parent.is_dir() else []
        raise DataError(f"{where} = {file!r}: no such file{nearest(path.name, near)}")
    decoder = msgspec.json.Decoder()
    with path.open("rb") as stream:
        for line, raw in enumerate(stream, start=1):
            text = raw.removeprefix(_BOM) if line == 1 else raw
            if not text.strip():
                continue
            try:
                row = decoder.decode(text)
            except msgspec.DecodeError as caught:
                reason = str(caught).removeprefix("JSON is malformed: ")
                raise DataError(f"{file}:{line}: not valid JSON: {reason}") from caught
            if not isinstance(row, dict):
                raise DataError(f"{file}:{line}: expected a JSON object, got {shown(row)}")
            yield line, row


def _short_names(files: Sequence[str]) -> list[str]:
    """The shortest endings of the paths that differ; a file listed twice gets `#2`, its rows count twice."""
    paths = [Path(file).resolve() for file in files]
    names = [_ending(path, set(paths) - {path}) for path in paths]
    earlier = [names[:i].count(name) for i, name in enumerate(names)]
    return [f"{name}#{n + 1}" if n else name for name, n in zip(names, earlier, strict=True)]


def _ending(path: Path, others: set[Path]) -> str:
    for length in range(1, len(path.parts)):
        ending = path.parts[-length:]
        if all(other.parts[-length:] != ending for other in others):
            return "/".join(ending)
    return str(path)
