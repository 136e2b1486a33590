"""A model directory → its renderer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from strop.errors import ConfigError
from strop.render.base import Renderer
from strop.render.bytes import TOKENIZER_CLASS, ByteRenderer
from strop.render.chat import ChatRenderer

_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")
"""Any of these is a vocabulary that transformers can load."""


def open_renderer(
    model_dir: Path, *, chat_template: bool = True, template_kwargs: Mapping[str, Any] | None = None
) -> Renderer:
    """The byte-level renderer if the directory asks for it, else the model's tokenizer and chat template.

    `chat_template`, `template_kwargs`: as `prompts.chat_template` and `prompts.chat_template_kwargs`. Raises
    ConfigError.
    """
    if check_tokenizer(model_dir) == TOKENIZER_CLASS:
        return ByteRenderer(chat_template=chat_template, template_kwargs=template_kwargs)
    return ChatRenderer(model_dir, chat_template=chat_template, template_kwargs=template_kwargs)


def check_tokenizer(model_dir: Path) -> str:
    """The `tokenizer_class` of the directory, "" if it names none; nothing heavy is imported.

    Raises ConfigError if the directory is not there or holds no tokenizer.
    """
    if not model_dir.is_dir():
        raise ConfigError(f"model = {str(model_dir)!r}: no such directory")
    config = model_dir / "tokenizer_config.json"
    named = _tokenizer_class(config) if config.is_file() else ""
    if named != TOKENIZER_CLASS and not any((model_dir / file).is_file() for file in _FILES):
        raise ConfigError(
            f"model = {str(model_dir)!r}: the directory holds no tokenizer; expected one of "
            f"{', '.join(_FILES)} beside the weights (copy it from the model that these were made from)"
        )
    return named


def _tokenizer_class(config: Path) -> str:
    try:
        return str(msgspec.json.decode(config.read_bytes(), type=dict).get("tokenizer_class", ""))
    except msgspec.DecodeError as caught:
        raise ConfigError(f"{config}: not valid JSON: {caught}") from caught
