"""What the benchmarks of training share: groups like those of GSM8K, a step over them, what it costs."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import gsm8k_like, seconds

from strop.algo.batch import Batch, make_batch
from strop.algo.policy import PolicyGradient
from strop.config.home import models_dir
from strop.config.tree import Algo, Optim, Train
from strop.nn.loading import CausalLM, load_model
from strop.nn.tiny import make_tiny
from strop.runtime.compute import Compute
from strop.sample import Group, Prompt, Sample, Tokens
from strop.train.local import LocalTrainer, Models
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
    return batch_of(gsm8k_like(num_prompts, size), vocabulary)


def batch_of(work: dict[str, Any], vocabulary: int) -> Batch:
    """Groups of an engine's work: responses of random ids, and no token without an advantage."""
    rng, groups, index = np.random.default_rng(0), [], 0
    for g, (ids, lengths) in enumerate(zip(work["prompts"], work["lengths"], strict=True)):
        prompt, samples = [i % vocabulary for i in ids], []
        for n in lengths:
            sample = Sample(
                index=index,
                group_id=g,
                sequence=Tokens.context(prompt),
                prompt_length=len(prompt),
                reward=0.0,
            )
            sample.append_response_tokens(
                tokens=rng.integers(0, vocabulary, n).tolist(), log_probs=[-1.0] * n
            )
            samples.append(sample)
            index += 1
        groups.append(Group(id=g, prompt=Prompt(id=str(g), messages=""), samples=samples))
    made = make_batch(groups, num_updates=1, max_response_tokens=work["cap"], temperature=1.0)
    made.advantage[:] = np.random.default_rng(1).normal(size=made.num_tokens)
    return made


class Step:
    """Steps of the trainer that a run has: forward and backward, the optimizer, what is measured on the way.

    They take the number of threads that torch has when the first begins: a thread of its own computes them.
    """

    def __init__(self, made: CausalLM) -> None:
        section, algorithm = Train(optim=Optim(lr=1e-6)), PolicyGradient(Algo(), num_updates=1)
        self._trainer = LocalTrainer(Models(made), section, algorithm, Compute(), total_updates=1000)

    def __call__(self, data: Batch) -> float:
        """Seconds of one."""
        return seconds(lambda: asyncio.run(self._trainer.step(data)))


def flops(made: CausalLM, packed: Packed) -> float:
    """Forward and backward: the trunk's matrices of every row, the head's of scored tokens, attention of what
    rows see."""
    seen = int((packed.positions + 1).sum())
    head = 6.0 * made.head_VD.numel() * len(packed.targets)
    return 3 * trunk_flops(made, len(packed.ids), seen) + head


def trunk_flops(made: CausalLM, tokens: int, seen: int) -> float:
    """Forward: matrices of `tokens`, which together attend to `seen`, themselves among them."""
    ends = ("embed_tokens.weight", "lm_head.weight")
    matrices = sum(p.numel() for n, p in made.named_parameters() if p.ndim == 2 and not n.endswith(ends))
    heads = made.module.config.num_attention_heads
    return 2.0 * matrices * tokens + 4.0 * made.num_layers * heads * made.head_dim * seen


def peak_gib(script: str, *side: str) -> float:
    """The most memory that `python script side` takes, which prints it at its end."""
    done = subprocess.run([sys.executable, script, *side], check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout.split()[-1])
