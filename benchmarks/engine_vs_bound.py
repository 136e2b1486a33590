"""The engine against the rate at which this machine multiplies matrices, measured before and after every run.

Counted: prompts once, and every decoded token, at 2 FLOPs a parameter; attention and sampling count nothing.
"""

from typing import Any

import numpy as np
import torch
from harness import MODEL, OUR_PYTHON, Side, interleaved, line_of, peak_gflops, print_lines, watched

NAME = "engine_vs_bound"
WANTS = {"float32": 0.6, "bfloat16": 0.55}
MINUTES = 12
REPEATS = 3
DRAWN = {"float32": 64, "bfloat16": 12}


def work_of(sequences: int, drawn: int) -> dict[str, Any]:
    """8 to a prompt of 110 tokens, all of one length: a full batch from first to last token."""
    rng = np.random.default_rng(0)
    prompts = [rng.integers(0, 40_000, 110).tolist() for _ in range(sequences // 8)]
    return {"prompts": prompts, "lengths": [[drawn] * 8] * len(prompts), "cap": drawn}


def bench() -> list[dict[str, Any]]:
    """64 and 128 sequences, two threads and one, both dtypes."""
    lines = []
    for dtype in WANTS:
        for threads in (2, 1):
            with Side(
                OUR_PYTHON, "strop_engine", threads, model=str(MODEL), dtype=dtype, max_tokens=65536
            ) as side:
                side(**work_of(8, 2))
                lines += [_line(side, dtype, threads, sequences) for sequences in (64, 128)]
    return lines


def _line(side: Side, dtype: str, threads: int, sequences: int) -> dict[str, Any]:
    torch.set_num_threads(threads)
    drawn, own, float32, memory = DRAWN[dtype], [], [], [0.0]
    work = work_of(sequences, drawn)

    def seconds() -> float:
        before = peak_gflops(getattr(torch, dtype), 3), peak_gflops(repeats=5)
        result = side(**work)
        own.append(max(before[0], peak_gflops(getattr(torch, dtype), 3)))
        float32.append(max(before[1], peak_gflops(repeats=5)))
        memory[0] = result["peak_gib"]
        return float(result["seconds"])

    with watched() as details:
        took = interleaved({f"{dtype} {threads} threads {sequences} sequences": seconds}, REPEATS)
    (took_s,) = took.values()
    # The first token of each response comes from its prompt's last hidden state: no pass of its own.
    tokens = sequences // 8 * 110 + sequences * (drawn - 1)
    rates = [tokens * 2 * 134.5e6 / s / 1e9 for s in took_s]
    details |= {"want": WANTS[dtype], "dtype": dtype, "threads": threads, "sequences": sequences}
    details |= {"computed": tokens, "seconds": took_s, "peak_gflops": own, "float32_gflops": float32}
    details |= {"of_float32_peak": float(np.median(np.divide(rates, float32))), "peak_gib": memory[0]}
    return line_of(NAME, float(np.median(np.divide(rates, own))), REPEATS, **details)


if __name__ == "__main__":
    print_lines(bench())
