"""64 prompts × 8 samples of lengths that neither side knows, in arrival order: the engine against `generate`.

`generate` takes the best static batch of {8 … 512}, found on all prompts' work at an eighth of the lengths.
"""

from typing import Any

from harness import (
    MODEL,
    OUR_PYTHON,
    Side,
    gsm8k_like,
    interleaved,
    line_of,
    print_lines,
    ratio_of,
    say,
    watched,
)

NAME = "engine_vs_generate"
WANT = 3
MINUTES = 25
REPEATS, ROWS, MAX_TOKENS = 3, (8, 16, 32, 64, 128, 256, 512), 40960


def best_rows(generate: Side, work: dict[str, Any]) -> dict[int, float]:
    """Seconds by rows."""
    short = {
        **work,
        "cap": work["cap"] // 8,
        "lengths": [[max(1, n // 8) for n in ns] for ns in work["lengths"]],
    }
    tried = {}
    for rows in ROWS:
        tried[rows] = generate(**short, rows=rows)["seconds"]
        say(f"  probe: {rows} rows {tried[rows]:.1f} s")
    return tried


def bench() -> list[dict[str, Any]]:
    """float32, two threads."""
    work = gsm8k_like(64, 8)
    peaks = {}

    def seconds(name: str, side: Side, **more: Any) -> float:
        result = side(**work, **more)
        peaks[name] = result["peak_gib"]
        return float(result["seconds"])

    given = {"model": str(MODEL), "dtype": "float32"}
    with (
        Side(OUR_PYTHON, "strop_engine", max_tokens=MAX_TOKENS, **given) as ours,
        Side(OUR_PYTHON, "generate", **given) as theirs,
    ):
        tried = best_rows(theirs, work)
        rows = min(tried, key=lambda r: tried[r])
        with watched() as details:
            sides = {
                "strop": lambda: seconds("strop", ours),
                "generate": lambda: seconds("generate", theirs, rows=rows),
            }
            took = interleaved(sides, REPEATS)
    drawn = sum(map(sum, work["lengths"]))
    details |= {"threads": 2, "prompts": work["source"], "drawn": drawn, "rows": rows, "probe_s": tried}
    details |= {"seconds": took, "peak_gib": peaks}
    return [line_of(NAME, ratio_of(took["generate"], took["strop"]), REPEATS, **details)]


if __name__ == "__main__":
    print_lines(bench())
