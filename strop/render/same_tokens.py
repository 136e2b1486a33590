"""Whether two models mean the same by an id: then one can read what the other wrote, id by id."""

from pathlib import Path
from typing import Any

import msgspec

from strop.errors import ConfigError
from strop.render.bytes import TOKENIZER_CLASS
from strop.render.open import check_tokenizer

_OTHERS = ("tokenizer.model", "vocab.json", "vocab.txt", "added_tokens.json")


def mean_the_same(one: Path, other: Path) -> bool:
    """Of the tokenizers in two model directories: each id stands for the same piece of text. How text is
    split into pieces, and the chat template, may differ. Raises ConfigError as `check_tokenizer`."""
    kinds = [check_tokenizer(each) for each in (one, other)]
    if TOKENIZER_CLASS in kinds:
        return kinds[0] == kinds[1]
    return bool(_pieces(one) == _pieces(other))


def _pieces(directory: Path) -> Any:
    """The vocabulary, in whatever form; equal only if the ids are."""
    file = directory / "tokenizer.json"
    if not file.is_file():
        return {name: (directory / name).read_bytes() for name in _OTHERS if (directory / name).is_file()}
    try:
        told = msgspec.json.decode(file.read_bytes(), type=dict)
    except msgspec.DecodeError as caught:
        raise ConfigError(f"{file}: not valid JSON: {caught}") from caught
    added = {token["id"]: token["content"] for token in told.get("added_tokens", [])}
    return told.get("model", {}).get("vocab"), added
