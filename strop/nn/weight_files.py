"""Whether the weights of a model directory are whole, told from the headers of its safetensors files.

A header is 8 bytes with the length N of what follows (little endian), then N bytes of JSON: each tensor's
type, shape and place in the file. No weight is read, and neither torch nor safetensors is needed.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strop.errors import ConfigError

CONFIG = "config.json"
SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
"""Names the files of weights that lie in several."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor as the header of its file describes it."""

    file: Path
    dtype: str
    """As safetensors names it: F32, BF16 …"""
    shape: tuple[int, ...]


def check_weight_files(model: Path) -> None:
    """Raises ConfigError for a file of the weights that is not there, cannot be read or was cut short."""
    for file in _files(model):
        try:
            _check(file, model)
        except OSError as caught:
            raise ConfigError(f'model = "{model}": {file.name} cannot be read: {caught.strerror}') from caught


def are_weights_there(model: Path) -> bool:
    """Whether every file of the weights is there, whatever is in it."""
    try:
        return all(file.is_file() for file in _files(model))
    except ConfigError:
        return False


def stored_tensors(model: Path) -> dict[str, Stored] | None:
    """The tensors in files that `check_weight_files` found whole; None when the index says otherwise."""
    stored = {
        name: Stored(file, entry["dtype"], tuple(entry["shape"]))
        for file in _files(model)
        for name, entry in _header(file).items()
        if name != "__metadata__"
    }
    if (model / SINGLE).is_file():
        return stored
    named = {name: model / file for name, file in read_object(model / INDEX)["weight_map"].items()}
    return stored if named == {name: tensor.file for name, tensor in stored.items()} else None


def _header(file: Path) -> dict[str, Any]:
    with file.open("rb") as opened:
        header: dict[str, Any] = json.loads(opened.read(int.from_bytes(opened.read(8), "little")))
    return header


def _files(model: Path) -> list[Path]:
    if (model / SINGLE).is_file():
        return [model / SINGLE]
    if not (model / INDEX).is_file():
        raise ConfigError(
            f'model = "{model}" has no {SINGLE} (nor {INDEX}); other weight files are not loaded (pickle)'
        )
    names = read_object(model / INDEX).get("weight_map", {}).values()
    return [model / str(name) for name in sorted(set(names))]


def _check(file: Path, model: Path) -> None:
    size = file.stat().st_size
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        header = opened.read(length) if 8 + length <= size else b""
    try:
        tensors = json.loads(header)
        ends = [entry["data_offsets"][1] for name, entry in tensors.items() if name != "__metadata__"]
    except (ValueError, LookupError, TypeError, AttributeError) as caught:
        raise ConfigError(
            f'model = "{model}": {file.name} is no safetensors file (a Git LFS pointer, or cut short?): get '
            "it anew"
        ) from caught
    expected = 8 + length + max(ends, default=0)
    if size != expected:
        raise ConfigError(
            f'model = "{model}": {file.name} holds {size} bytes, its header says {expected}: it was cut '
            "short or damaged; get it anew"
        )


def read_object(file: Path) -> dict[str, Any]:
    """The JSON object in a model's file. Raises ConfigError when it holds something else."""
    try:
        value = json.loads(file.read_bytes())
    except OSError as caught:
        raise ConfigError(f"{file}: cannot be read: {caught.strerror}") from caught
    except ValueError as caught:
        raise ConfigError(f"{file}: is not JSON: {caught}") from caught
    if not isinstance(value, dict):
        raise ConfigError(f"{file}: expected a JSON object")
    return value
