"""A model small enough to train from random weights in a minute: two Llama layers over bytes."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import torch

TOKENIZER = {"tokenizer_class": "StropByteRenderer"}
VOCABULARY = 264
"""256 bytes and the byte renderer's specials, rounded up to a multiple of 8."""
END_OF_TURN = 256


def make_tiny(path: Path, *, seed: int = 0, hidden: int = 64, layers: int = 2) -> Path:
    """Write a random model to `path` (made in one piece); an existing one is left alone.

    The same seed gives the same weights on every machine of one torch version.
    """
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    if path.is_dir():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
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
    aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    model.save_pretrained(aside)
    (aside / "tokenizer_config.json").write_text(json.dumps(TOKENIZER) + "\n")
    move_into_place(aside, path)
    return path


def move_into_place(aside: Path, path: Path) -> None:
    """Rename a finished directory to its name; if another process was first, its result stands."""
    aside.chmod(0o755)
    try:
        os.rename(aside, path)
    except OSError:
        if not path.is_dir():
            raise
        shutil.rmtree(aside)
