"""A training step against the rate at which this machine multiplies matrices, measured around every step.

python benchmarks/train_vs_bound.py. A token counts as 6 FLOPs a parameter, as is usual; `exact` counts the
head only where a log-prob is computed, and attention. The optimizer's time is in the step, its work is in
neither.
"""

import sys
from collections.abc import Iterator
from statistics import median
from typing import Any

import torch
from harness import line_of, peak_gflops, print_lines, say, watched
from training import Step, batch, flops, model, peak_gib

from strop.algo.batch import Batch
from strop.config.tree import Train
from strop.nn.loading import CausalLM
from strop.runtime.memory import GIB, peak_bytes
from strop.train.packing import pack

NAME = "train_vs_bound"
WANT = 0.6
MINUTES = 4
NUM_PROMPTS, REPEATS = 4, 3


def _work(made: CausalLM, data: Batch) -> dict[str, Any]:
    """Tokens of a step, and its FLOPs counted in both ways."""
    packs = pack(data, range(len(data.samples)), max_tokens=Train().max_tokens_per_device)
    tokens = sum(len(p.ids) for p in packs)
    return {
        "tokens": tokens,
        "scored": sum(len(p.targets) for p in packs),
        "gflop": 6 * sum(p.numel() for _, p in made.named_parameters()) * tokens / 1e9,
        "exact_gflop": sum(flops(made, p) for p in packs) / 1e9,
    }


def _line(threads: int, made: CausalLM, data: Batch) -> dict[str, Any]:
    torch.set_num_threads(threads)
    step, work, took, peaks = Step(made), _work(made, data), [], []
    step(batch(1, made.vocab_size))  # the optimizer's memory, and what libraries put off
    with watched() as details:
        for repeat in range(REPEATS):
            before = peak_gflops()
            took.append(step(data))
            peaks.append(max(before, peak_gflops()))
            say(f"  {repeat + 1}/{REPEATS} {threads} threads: {took[-1]:.1f}")
    rates = [1 / s / p for s, p in zip(took, peaks, strict=True)]
    details |= {"threads": threads, **work, "seconds": took, "peak_gflops": peaks}
    details |= {"exact": work["exact_gflop"] * median(rates), "peak_gib": peak_gib(__file__, str(threads))}
    return line_of(NAME, work["gflop"] * median(rates), REPEATS, **details)


def bench() -> Iterator[dict[str, Any]]:
    """With two threads and with one."""
    made = model()
    data = batch(NUM_PROMPTS, made.vocab_size)
    for threads in (2, 1):
        yield _line(threads, made, data)


def _one_step(threads: int) -> None:
    torch.set_num_threads(threads)
    made = model()
    Step(made)(batch(NUM_PROMPTS, made.vocab_size))


if __name__ == "__main__":
    if sys.argv[1:]:
        _one_step(int(sys.argv[1]))
        print(peak_bytes() / GIB)
    else:
        print_lines(bench())
