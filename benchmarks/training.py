"""What the benchmarks of training share: groups like those of GSM8K, what a pass over them costs."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from harness import gsm8k_like

from strop.algo.batch import Batch, make_batch
from strop.config.home import models_dir
from strop.nn.loading import CausalLM, load_model
from strop.nn.tiny import make_tiny
from strop.sample import Group, Prompt, Sample, Tokens
from strop.train.packing import Packed


def model_dir() -> Path:
    """SmolLM2 where it is installed, else a tiny model."""
    smollm = models_dir() / "smollm2-135m"
    return smollm if smollm.is_dir() else make_tiny(models_dir() / "tiny")


def model() -> CausalLM:
    """In float32."""
    return load_model(model_dir(), torch.float32)


def batch(num_prompts: int, vocabulary: int, size: int = 8) -> Batch:
    """The harness's prompts and lengths; responses of random ids."""
    work, rng = gsm8k_like(num_prompts, size), np.random.default_rng(0)
    groups = []
    for g, (ids, lengths) in enumerate(zip(work["prompts"], work["lengths"], strict=True)):
        prompt, samples = [i % vocabulary for i in ids], []
        for i, n in enumerate(lengths):
            sample = Sample(
                index=g * size + i,
                group_id=g,
                sequence=Tokens.context(prompt),
                prompt_length=len(prompt),
                reward=0.0,
            )
            sample.append_response_tokens(
                tokens=rng.integers(0, vocabulary, n).tolist(), log_probs=[-1.0] * n
            )
            samples.append(sample)
        groups.append(Group(id=g, prompt=Prompt(id=str(g), messages=""), samples=samples))
    return make_batch(groups, num_updates=1, max_response_tokens=work["cap"], temperature=1.0)


def seconds(work: Callable[[], object]) -> float:
    """Of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def flops(made: CausalLM, packed: Packed) -> float:
    """Forward and backward: the trunk's matrices of every row, the head's of scored tokens, attention of what
    rows see."""
    matrices = sum(p.numel() for n, p in made.named_parameters() if p.ndim == 2 and "embed_tokens" not in n)
    heads = made.module.config.num_attention_heads
    seen = int((packed.positions + 1).sum())
    attended = 12 * made.num_layers * heads * made.head_dim * seen
    return 6.0 * matrices * len(packed.ids) + 6.0 * made.head_VD.numel() * len(packed.targets) + attended


def peak_gib(script: str, side: str) -> float:
    """The most memory that `python script side` takes, which prints it at its end."""
    done = subprocess.run([sys.executable, script, side], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])
