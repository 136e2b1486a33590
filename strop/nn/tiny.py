"""A model small enough to train from random weights in a minute: two Llama layers over bytes."""

import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from strop.nn.llama import Llama, LlamaShape, RMSNorm
from strop.nn.reading import shape_of_llama
from strop.nn.saving import safetensors_at
from strop.nn.weight_files import CONFIG, SINGLE
from strop.store.durable import writing

TOKENIZER = {"tokenizer_class": "StropByteRenderer"}
VOCABULARY = 264
"""256 bytes and the byte renderer's specials, rounded up to a multiple of 8."""
END_OF_TURN = 256


def make_tiny(path: Path, *, seed: int = 0, hidden: int = 64, layers: int = 2) -> Path:
    """Write a random model to `path` (made in one piece); an existing one is left alone.

    The same seed gives the same weights on every machine of one torch version. Raises RunError when the disk
    refuses.
    """
    if path.is_dir():
        return path
    with moved_into_place(path) as aside:
        _write(aside / CONFIG, _config(hidden=hidden, layers=layers))
        _write(aside / "generation_config.json", {"eos_token_id": END_OF_TURN})
        _write(aside / "tokenizer_config.json", TOKENIZER)
        shape = shape_of_llama(aside)
        assert shape is not None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            weights = {name: parameter.detach() for name, parameter in _random(shape).named_parameters()}
        save_file(weights, aside / SINGLE, metadata={"format": "pt"})
    return path


def _config(*, hidden: int, layers: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "vocab_size": VOCABULARY,
        "hidden_size": hidden,
        "intermediate_size": hidden * 3,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": hidden // 4,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 2048,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": END_OF_TURN,
        "pad_token_id": None,
    }


def _random(shape: LlamaShape) -> Llama:
    """As transformers makes them: torch's own beginning of each module, drawn and then drawn over.

    Without the first draw a seed would give other weights.
    """
    model = Llama(shape).to_empty(device="cpu")
    for part in (model.model, model.lm_head):
        for module in part.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight)
            elif isinstance(module, nn.Linear):
                nn.init.kaiming_uniform_(module.weight, a=math.sqrt(5))
        for module in part.modules():
            if isinstance(module, nn.Embedding | nn.Linear):
                nn.init.normal_(module.weight, std=0.02)
            elif isinstance(module, RMSNorm):
                nn.init.ones_(module.weight)
    return model


def _write(file: Path, value: dict[str, Any]) -> None:
    file.write_text(json.dumps(value, indent=2) + "\n")


@contextmanager
def moved_into_place(path: Path) -> Iterator[Path]:
    """A new directory to fill, which then gets the name `path`; if another process was first, its result
    stands. Raises RunError when the disk refuses; nothing is left then."""
    with writing(path), safetensors_at(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        try:
            yield aside
            aside.chmod(0o755)
            _rename(aside, path)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def _rename(aside: Path, path: Path) -> None:
    try:
        os.rename(aside, path)
    except OSError:
        if not path.is_dir():
            raise
