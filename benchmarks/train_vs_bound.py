"""A training step against the rate at which this machine multiplies matrices, measured around every step.

python benchmarks/train_vs_bound.py. A token counts as 6 FLOPs a parameter, as is usual; `exact` counts the
head only where a log-prob is computed, and attention.
"""

import sys
from statistics import median
from typing import Any

import numpy as np
import torch
from harness import line_of, peak_gflops, print_lines, watched
from training import batch, flops, model, peak_gib, seconds

from strop.algo.batch import Batch
from strop.algo.grpo import Grpo
from strop.config.tree import Algo, Optim, Train
from strop.nn.loading import CausalLM
from strop.runtime.compute import Compute
from strop.runtime.memory import GIB, peak_bytes
from strop.train.local import LocalTrainer, Models
from strop.train.packing import pack

NAME = "train_vs_bound"
WANT = 0.6
MINUTES = 5
NUM_PROMPTS, REPEATS = 4, 3


def _prepared() -> tuple[CausalLM, Batch, LocalTrainer]:
    made = model()
    data = batch(NUM_PROMPTS, made.vocab_size)
    algorithm = Grpo(Algo(), num_updates=1)
    data.advantage[:] = np.random.default_rng(1).normal(size=data.num_tokens)
    section = Train(optim=Optim(lr=1e-6))
    return made, data, LocalTrainer(Models(made), section, algorithm, Compute(), total_updates=100)


def _line(threads: int, made: CausalLM, data: Batch, trainer: LocalTrainer) -> dict[str, Any]:
    torch.set_num_threads(threads)
    packs = pack(data, range(len(data.samples)), max_tokens=Train().max_tokens_per_device)
    tokens = sum(len(p.ids) for p in packs)
    usual = 6 * sum(p.numel() for _, p in made.named_parameters()) * tokens / 1e9
    exact = sum(flops(made, p) for p in packs) / 1e9
    trainer._step(data)  # first touches of memory are not the step's
    took, peaks = [], []
    for _ in range(REPEATS):
        before = peak_gflops()
        took.append(seconds(lambda: trainer._step(data)))
        peaks.append((before + peak_gflops()) / 2)
    return line_of(
        NAME,
        median(usual / s / p for s, p in zip(took, peaks, strict=True)),
        REPEATS,
        threads=threads,
        tokens=tokens,
        scored=sum(len(p.targets) for p in packs),
        seconds=took,
        peak_gflops=peaks,
        exact=median(exact / s / p for s, p in zip(took, peaks, strict=True)),
        peak_gib=peak_gib(__file__, "step"),
    )


def bench() -> list[dict[str, Any]]:
    """With two threads and with one."""
    parts = _prepared()
    with watched() as machine:
        lines = [_line(threads, *parts) for threads in (2, 1)]
    return [{**line, "details": {**line["details"], **machine}} for line in lines]


if __name__ == "__main__":
    if sys.argv[1:] == ["step"]:
        _, once, stepping = _prepared()
        stepping._step(once)
        print(peak_bytes() / GIB)
    else:
        print_lines(bench())
