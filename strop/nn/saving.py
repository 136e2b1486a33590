"""Write a model as a Hugging Face directory with its tokenizer, and read weights back in place."""

import shutil
from pathlib import Path

import torch
from safetensors import safe_open

from strop.nn.loading import CausalLM

_NOT_COPIED = {".safetensors", ".bin", ".gguf", ".pt", ".index.json"}


def save_model(model: CausalLM, directory: Path) -> None:
    """Weights of `model`; config, tokenizer and licence files as they are where it came from."""
    for file in model.source.iterdir():
        if file.is_file() and not any(file.name.endswith(suffix) for suffix in _NOT_COPIED):
            shutil.copyfile(file, directory / file.name)
    model.module.save_pretrained(directory, max_shard_size="100GB")  # type: ignore[operator]


@torch.no_grad()
def read_weights(model: CausalLM, directory: Path) -> None:
    """Copy the weights of `directory` into the model's own tensors, which others may share."""
    with safe_open(directory / "model.safetensors", framework="pt") as file:
        for name, parameter in model.named_parameters():
            parameter.copy_(file.get_tensor(name))
