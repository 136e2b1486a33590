"""Rows in every format that is read."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def tables(tmp_path):
    """Writes rows in a format, and gives the path to name in `prompts.files`."""

    def write(kind, rows):
        path = tmp_path / f"data.{kind}"
        match kind:
            case "jsonl":
                path.write_bytes(_lines(rows))
            case "jsonl.gz":
                path.write_bytes(gzip.compress(_lines(rows)))
            case "parquet":
                pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=3)
            case "shards":
                path = tmp_path / "train"
                _write_shards(path, rows)
            case "saved":
                path = tmp_path / "saved"
                _save(path, rows)
        return path

    return write


def _lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _write_shards(path, rows):
    """As downloads from the Hub look."""
    middle = len(rows) // 2
    for number, part in enumerate((rows[:middle], rows[middle:])):
        table = pa.Table.from_pylist(part)
        pq.write_table(table, path.with_name(f"{path.name}-{number:05}-of-00002.parquet"))


def _save(path, rows):
    """As `datasets` does; `test_saved_data_sets.py` has it from `datasets` itself."""
    path.mkdir()
    files, middle = ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"], len(rows) // 3
    table = pa.Table.from_pylist(rows)
    for file, part in zip(files, (table[:middle], table[middle:]), strict=True):
        with pa.OSFile(str(path / file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(part, max_chunksize=2)
    (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": file} for file in files]}))
