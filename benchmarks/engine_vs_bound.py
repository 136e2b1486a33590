"""The engine against the rate at which this machine multiplies matrices, measured before and after every run.

Counted: prompts once, and every decoded token, at 2 FLOPs a parameter; attention and sampling count nothing.
Where the machine has no bfloat16 products, responses in it are short, and more of them share a prompt, so
that a run ends within a minute and most of it is decoding all the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from harness import (
    MODEL,
    OUR_PYTHON,
    WARM_UP,
    Side,
    has_bfloat16,
    interleaved,
    line_of,
    peak_gflops,
    print_lines,
    watched,
)

NAME = "engine_vs_bound"
WANTS = {"float32": 0.6, "bfloat16": 0.55}
MINUTES = 10
REPEATS = 3
PROMPT_TOKENS = 110


@dataclass(frozen=True, slots=True)
class Shape:
    """A batch that is full from the first to the last token: all responses have one length."""

    sequences: int
    samples: int
    """To a prompt."""
    drawn: int

    @property
    def work(self) -> dict[str, Any]:
        """For a side."""
        rng, num = np.random.default_rng(0), self.sequences // self.samples
        prompts = [rng.integers(0, 40_000, PROMPT_TOKENS).tolist() for _ in range(num)]
        return {"prompts": prompts, "lengths": [[self.drawn] * self.samples] * num, "cap": self.drawn}

    @property
    def prefilled(self) -> int:
        """Tokens of prompts."""
        return self.sequences // self.samples * PROMPT_TOKENS

    @property
    def decoded(self) -> int:
        """The first token of each response comes from its prompt's last hidden state: no pass of its own."""
        return self.sequences * (self.drawn - 1)


def bench() -> Iterator[dict[str, Any]]:
    """64 and 128 sequences, two threads and one, both dtypes."""
    for dtype in WANTS:
        is_slow = dtype == "bfloat16" and not has_bfloat16()
        for threads in (2, 1):
            with Side(
                OUR_PYTHON, "strop_engine", threads, model=str(MODEL), dtype=dtype, max_tokens=65536
            ) as side:
                side(**WARM_UP)
                for sequences in (64, 128):
                    shape = Shape(sequences, 32, 6) if is_slow else Shape(sequences, 8, 48)
                    yield _line(side, dtype, threads, shape)


def _line(side: Side, dtype: str, threads: int, shape: Shape) -> dict[str, Any]:
    torch.set_num_threads(threads)
    own, float32, memory = [], [], [0.0]
    work = shape.work

    def seconds() -> float:
        before = peak_gflops(getattr(torch, dtype), 3), peak_gflops()
        result = side(**work)
        own.append(max(before[0], peak_gflops(getattr(torch, dtype), 3)))
        float32.append(max(before[1], peak_gflops()))
        memory[0] = result["peak_gib"]
        return float(result["seconds"])

    with watched() as details:
        took = interleaved({f"{dtype} {threads} threads {shape.sequences} sequences": seconds}, REPEATS)
    (took_s,) = took.values()
    tokens = shape.prefilled + shape.decoded
    rates = [tokens * 2 * side.loaded["parameters"] / s / 1e9 for s in took_s]
    details |= {"want": WANTS[dtype], "dtype": dtype, "threads": threads, "sequences": shape.sequences}
    details |= {"prefilled": shape.prefilled, "decoded": shape.decoded, "seconds": took_s}
    details |= {"peak_gflops": own, "float32_gflops": float32}
    details |= {"of_float32_peak": float(np.median(np.divide(rates, float32))), "peak_gib": memory[0]}
    return line_of(NAME, float(np.median(np.divide(rates, own))), REPEATS, **details)


if __name__ == "__main__":
    print_lines(bench())
