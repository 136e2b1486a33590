"""Samples as Parquet: one row a sample, the tokens as lists, readable by anything that reads Parquet.

Columns are the fields of `Sample`, with the five token lists side by side and `advantage` (one number a
response token, null where none was given) after them. What may be nested is JSON text.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from strop.errors import DataError
from strop.sample import FORMAT, Group, Sample, SpecInfo, Status, Tokens
from strop.store.durable import replacing
from strop.store.json_text import encode_exact
from strop.store.records import check_format, sampling_from_json, sampling_to_json

Advantages = dict[int, NDArray[np.float32]]
"""By `Sample.index`: one number a response token."""

_ARRAY = pa.struct(
    [("name", pa.string()), ("dtype", pa.string()), ("shape", pa.list_(pa.int64())), ("data", pa.binary())]
)
_SCHEMA = pa.schema(
    [
        ("index", pa.int64()),
        ("group_id", pa.int64()),
        ("prompt_id", pa.string()),
        ("trajectory_id", pa.int64()),
        ("policy", pa.string()),
        ("role", pa.string()),
        ("prompt", pa.string()),
        ("label", pa.string()),
        ("ids", pa.list_(pa.int32())),
        ("sampled", pa.list_(pa.bool_())),
        ("mask", pa.list_(pa.bool_())),
        ("behavior", pa.list_(pa.float32())),
        ("versions", pa.list_(pa.int32())),
        ("advantage", pa.list_(pa.float32())),
        ("prompt_length", pa.int32()),
        ("response", pa.string()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("reward", pa.float64()),
        ("scores", pa.string()),
        ("remove_sample", pa.bool_()),
        ("metadata", pa.string()),
        ("timing", pa.string()),
        ("sampling", pa.string()),
        ("extras", pa.list_(_ARRAY)),
        ("media", pa.list_(pa.string())),
        ("spec_info", pa.string()),
    ],
    metadata={"strop.format": str(FORMAT)},
)
_TOKEN_LISTS = ("ids", "sampled", "mask", "behavior", "versions", "advantage")
_JSON = ("prompt", "label", "scores", "metadata", "timing", "sampling", "spec_info")


def write_samples(path: Path, groups: list[Group], advantages: Advantages | None = None) -> None:
    """Put every sample of `groups` at `path`, in order; the file appears whole or not at all.

    Raises RunError when a sample's metadata, label or scores have no JSON form.
    """
    samples = [sample for group in groups for sample in group.samples]
    columns = {name: [write(sample) for sample in samples] for name, write in _writers().items()}
    columns["advantage"] = [(advantages or {}).get(sample.index) for sample in samples]
    table = pa.table({name: columns[name] for name in _SCHEMA.names}, schema=_SCHEMA)
    with replacing(path) as aside:
        pq.write_table(table, aside, compression="zstd")


def read_samples(path: Path) -> list[Sample]:
    """What `write_samples` wrote, in its order. DataError for another kind or format of file."""
    table = _read(path)
    lists = {name: _lists(table[name]) for name in _TOKEN_LISTS if name != "advantage"}
    rest = table.drop_columns(list(_TOKEN_LISTS)).to_pylist()
    return [_sample(row, {name: lists[name][i] for name in lists}) for i, row in enumerate(rest)]


def read_advantages(path: Path) -> Advantages:
    """The advantages that were written, by sample index; samples written without any are absent."""
    table = _read(path, columns=["index", "advantage"])
    rows = zip(table["index"].to_pylist(), _lists(table["advantage"]), strict=True)
    return {index: advantage for index, advantage in rows if advantage is not None}


def _writers() -> dict[str, Callable[[Sample], Any]]:
    sampling_of = cache(lambda sampling: encode_exact(sampling_to_json(sampling), "a sample's sampling"))
    no_speculation = encode_exact(asdict(SpecInfo()), "no speculation")
    return {
        "index": lambda s: s.index,
        "group_id": lambda s: s.group_id,
        "prompt_id": lambda s: s.prompt_id,
        "trajectory_id": lambda s: s.trajectory_id,
        "policy": lambda s: s.policy,
        "role": lambda s: s.role,
        "prompt": lambda s: _json(s, "prompt", s.prompt),
        "label": lambda s: _json(s, "label", s.label),
        "ids": lambda s: s.sequence.ids,
        "sampled": lambda s: s.sequence.sampled,
        "mask": lambda s: s.sequence.mask,
        "behavior": lambda s: s.sequence.behavior,
        "versions": lambda s: s.sequence.versions,
        "prompt_length": lambda s: s.prompt_length,
        "response": lambda s: s.response,
        "status": lambda s: s.status.value,
        "error": lambda s: s.error,
        "reward": lambda s: s.reward,
        "scores": lambda s: _json(s, "scores", s.scores),
        "remove_sample": lambda s: s.remove_sample,
        "metadata": lambda s: _json(s, "metadata", s.metadata),
        "timing": lambda s: _json(s, "timing", s.timing),
        "sampling": lambda s: sampling_of(s.sampling),
        "extras": lambda s: [_array(name, array) for name, array in s.extras.items()],
        "media": lambda s: list(s.media),
        "spec_info": lambda s: (
            no_speculation if s.spec_info == SpecInfo() else _json(s, "spec_info", asdict(s.spec_info))
        ),
    }


def _json(sample: Sample, field: str, value: Any) -> str:
    return encode_exact(value, f"sample {sample.index} of prompt {sample.prompt_id}: {field}")


def _array(name: str, array: NDArray[Any]) -> dict[str, Any]:
    return {"name": name, "dtype": array.dtype.str, "shape": array.shape, "data": array.tobytes()}


def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
    try:
        table = pq.read_table(path, columns=columns, partitioning=None)
    except OSError as caught:
        raise DataError(f"{path}: cannot be read: {caught.strerror or caught}") from caught
    except pa.ArrowInvalid as caught:
        raise DataError(f"{path}: is not a Parquet file: {caught}") from caught
    found = (table.schema.metadata or {}).get(b"strop.format", b"none").decode()
    check_format(int(found) if found.isdigit() else found, str(path))
    return table


def _lists(column: pa.ChunkedArray) -> list[Any]:
    return [row.values.to_numpy(zero_copy_only=False) if row.is_valid else None for row in column]


def _sample(row: dict[str, Any], lists: dict[str, NDArray[Any]]) -> Sample:
    fields = {**row, **{name: json.loads(row[name]) for name in _JSON}}
    return Sample(
        **{
            **fields,
            "sequence": Tokens(**lists),
            "status": Status(row["status"]),
            "sampling": sampling_from_json(fields["sampling"]),
            "extras": {array["name"]: _restored(array) for array in row["extras"]},
            "media": tuple(row["media"]),
            "spec_info": SpecInfo(**fields["spec_info"]),
        }
    )


def _restored(array: dict[str, Any]) -> NDArray[Any]:
    return np.frombuffer(array["data"], np.dtype(array["dtype"])).reshape(array["shape"]).copy()
