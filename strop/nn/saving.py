"""Write a model as a Hugging Face directory with its tokenizer, and read weights back in place."""

import shutil
from pathlib import Path

import torch
from safetensors import safe_open

from strop.nn.loading import CausalLM
from strop.store.checkpoints import MANIFEST

_COPIED = ("*.json", "*.jinja", "*.model", "*.tiktoken", "*.txt", "LICENSE*", "NOTICE*", "README*")
_NOT_COPIED = ("*.index.json", MANIFEST)
"""Of weights in several files; of a strop checkpoint, whose other files are not those of a model either."""


def save_model(model: CausalLM, directory: Path) -> None:
    """Weights of `model`; config, tokenizer and licence files as they are where it came from."""
    for file in model.source.iterdir():
        if file.is_file() and _is_any(file, _COPIED) and not _is_any(file, _NOT_COPIED):
            shutil.copyfile(file, directory / file.name)
    model.module.save_pretrained(directory, max_shard_size="100GB")  # type: ignore[operator]


@torch.no_grad()
def read_weights(model: CausalLM, directory: Path) -> None:
    """Copy the weights of `directory` into the model's own tensors, which others may share."""
    with safe_open(directory / "model.safetensors", framework="pt") as file:
        for name, parameter in model.named_parameters():
            parameter.copy_(file.get_tensor(name))


def _is_any(file: Path, patterns: tuple[str, ...]) -> bool:
    return any(file.match(pattern) for pattern in patterns)
