"""A model small enough to train from random weights in a minute: two Llama layers over bytes."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from strop.nn.saving import safetensors_at
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
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    if path.is_dir():
        return path
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=hidden * 3,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=END_OF_TURN,
        pad_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    with moved_into_place(path) as aside:
        model.save_pretrained(aside)
        (aside / "tokenizer_config.json").write_text(json.dumps(TOKENIZER) + "\n")
    return path


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
