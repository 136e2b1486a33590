"""A path → what reads its rows: by the ending of a file, or by what a directory holds."""

from pathlib import Path

from strop.errors import DataError
from strop.plugins import nearest
from strop.prompts.jsonl import JsonlFile
from strop.prompts.row_file import RowFile

_JSONL = {"", ".jsonl", ".ndjson", ".json"}
_COMPRESSED = {".zst", ".bz2", ".xz", ".zip", ".lz4", ".7z"}
EXPECTED = "JSONL (also .gz) and Parquet files, and directories that `datasets` saved, are read"


def open_rows(path: str, *, what: str) -> RowFile:
    """What reads a file or a directory. `what` names it in messages: `prompts.files = 'data.jsonl'`.

    Raises DataError when there is nothing there, or nothing that is read.
    """
    place = Path(path)
    if place.is_dir():
        return _open_directory(place, path, what=what)
    if not place.is_file():
        return _open_shards(place, path, what=what)
    suffix = Path(place.name.lower().removesuffix(".gz")).suffix
    if suffix in _JSONL:
        return JsonlFile(path)
    if place.suffix.lower() == ".parquet":
        from strop.prompts.parquet import open_parquet  # pyarrow, which JSONL does not need

        return open_parquet(place, path)
    raise DataError(f"{what}: {place.suffix} files are not read; {_way_out(place.suffix.lower())}")


def _way_out(suffix: str) -> str:
    if suffix == ".arrow":
        return "name the directory that `datasets` saved, with its state.json"
    if suffix in _COMPRESSED:
        return f"decompress it; {EXPECTED}"
    return f"write the rows as JSONL or Parquet; {EXPECTED}"


def _open_directory(place: Path, path: str, *, what: str) -> RowFile:
    from strop.prompts.parquet import open_directory  # pyarrow, which JSONL does not need
    from strop.prompts.saved import open_saved

    found = open_saved(place, path, what=what) or open_directory(place, path, what=what)
    if found:
        return found
    inside = sorted(file for file in place.glob("*") if file.suffix in (".jsonl", ".gz", ".parquet"))
    deeper = sorted({file.parent for file in place.glob("*/*.parquet")} | {*_saved_below(place)})
    readable = [*inside, *deeper]
    holds = f"; it holds {', '.join(map(str, readable[:4]))}: name those" if readable else ""
    raise DataError(
        f"{what}: is a directory without Parquet files and without a data set that `datasets` saved{holds}"
    )


def _saved_below(place: Path) -> list[Path]:
    return [file.parent for name in ("state.json", "dataset_dict.json") for file in place.glob(f"*/{name}")]


def _open_shards(place: Path, path: str, *, what: str) -> RowFile:
    near: list[str] = []
    if place.parent.is_dir():
        from strop.prompts.parquet import open_shards  # pyarrow, which JSONL does not need

        found = open_shards(place, path, what=what)
        if found:
            return found
        near = sorted(file.name for file in place.parent.iterdir())
    hint = "; a slice is @[a:b]" if "@[" in path else nearest(place.name, near)
    raise DataError(f"{what}: no such file{hint}")
