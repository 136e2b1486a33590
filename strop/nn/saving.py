"""Write a model as a Hugging Face directory with its tokenizer, and read weights back in place."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from strop.errors import RunError
from strop.nn.llama import Llama
from strop.nn.loading import CausalLM, load_model
from strop.nn.weight_files import CONFIG, SINGLE, read_object
from strop.store.checkpoints import MANIFEST

_COPIED = ("*.json", "*.jinja", "*.model", "*.tiktoken", "*.txt", "LICENSE*", "NOTICE*", "README*")
_NOT_COPIED = ("*.index.json", MANIFEST)
"""Of weights in several files; of a strop checkpoint, whose other files are not those of a model either."""


@contextmanager
def safetensors_at(path: Path) -> Iterator[None]:
    """Around what safetensors writes or reads at `path`: RunError names it when that fails.

    safetensors does not raise OSError for what the disk refuses.
    """
    try:
        yield
    except SafetensorError as caught:
        raise RunError(f"{path}: {caught}") from caught


def save_model(model: CausalLM, directory: Path) -> None:
    """Weights of `model`; config, tokenizer and licence files as they are where it came from."""
    copy_companions(model, directory)
    write_weights(model, directory, None)


def write_weights(model: CausalLM, directory: Path, weights: dict[str, Tensor] | None) -> None:
    """The weights of `model`, or `weights` in their place, and a config.json that tells their dtype."""
    with safetensors_at(directory / SINGLE):
        if not isinstance(model.module, Llama):
            model.module.save_pretrained(  # type: ignore[operator]
                directory, state_dict=weights, max_shard_size="100GB"
            )
            return
        tensors = weights or {name: p.detach() for name, p in model.named_parameters()}
        # By name, so that the file does not depend on what shares memory with what.
        contiguous = {name: tensors[name].contiguous() for name in sorted(tensors)}
        save_file(contiguous, directory / SINGLE, metadata={"format": "pt"})
    config = read_object(directory / CONFIG)
    config.pop("torch_dtype", None)
    config["dtype"] = str(model.dtype).removeprefix("torch.")
    (directory / CONFIG).write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def copy_companions(model: CausalLM, directory: Path) -> None:
    """Config, tokenizer and licence files of where the model came from."""
    for file in model.source.iterdir():
        if file.is_file() and _is_any(file, _COPIED) and not _is_any(file, _NOT_COPIED):
            shutil.copyfile(file, directory / file.name)


@torch.no_grad()
def read_weights(model: CausalLM, directory: Path) -> None:
    """Copy the weights of `directory` into the model's own tensors, which others may share."""
    own = model.named_parameters()
    with safetensors_at(directory / SINGLE), safe_open(directory / SINGLE, framework="pt") as file:
        if set(file.keys()) >= {name for name, _ in own}:
            for name, parameter in own:
                parameter.copy_(file.get_tensor(name))
            return
    # Experts are stored one by one and held in one tensor: transformers knows how.
    stored = dict(load_model(directory, model.dtype).named_parameters())
    for name, parameter in own:
        parameter.copy_(stored[name])


def _is_any(file: Path, patterns: tuple[str, ...]) -> bool:
    return any(file.match(pattern) for pattern in patterns)
