"""64 prompts × 8 samples of lengths that neither side knows, in arrival order: the engine against `generate`.

`generate` takes its best static batch of {8 … 512}. What a size costs is reckoned from one batch of it: the
time to its first token, and that of some steps more, times the batches and their steps. From 32 rows on,
sizes are tried downwards and upwards for as long as the next is faster; a row's share of attention and of the
cache is the same at every size, so that steps early in a response stand for all.

Batches do not know of each other, and all of them thrice would take more than an hour. So the engine does all
of the work three times, and `generate` beside it three parts that share no batch, each every 18th of them. A
part's seconds count for the whole in proportion to the tokens that it computes, padding among them, weighed
by what a prompt's token and a step cost in the probe; `share` is how much of the whole was done.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness import (
    MODEL,
    OUR_PYTHON,
    WARM_UP,
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
MINUTES = 12
REPEATS, MAX_TOKENS = 3, 40960
PROMPTS, SAMPLES = 64, 8
ROWS, FIRST, STEPS = (8, 16, 32, 64, 128, 256, 512), 32, 9
Work = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cost:
    """What static batches of so many rows cost."""

    rows: int
    prompt_s: float
    """Of a batch: one token more in every prompt."""
    step_s: float
    """Of a batch: one token more for every row."""

    def __call__(self, work: Work) -> float:
        """Seconds for all batches of `work`."""
        return sum(
            self.prompt_s * max(map(len, part["prompts"])) + self.step_s * (longest(part) - 1)
            for part in batches(work, self.rows)
        )


def longest(work: Work) -> int:
    """Tokens of its longest response."""
    return max(max(ns) for ns in work["lengths"])


def batches(work: Work, rows: int) -> list[Work]:
    """In arrival order; the samples of a prompt stand together, and `rows` is a multiple of them."""
    size = rows // SAMPLES
    return [
        {**work, "prompts": work["prompts"][at : at + size], "lengths": work["lengths"][at : at + size]}
        for at in range(0, len(work["prompts"]), size)
    ]


def parts(work: Work, rows: int) -> list[Work]:
    """Every 18th batch, thrice; all of the work thrice if there are fewer batches than three."""
    whole = batches(work, rows)
    if len(whole) < REPEATS:
        return [work] * REPEATS
    return [
        {
            **work,
            **{
                key: [x for part in whole[i :: 6 * REPEATS] for x in part[key]]
                for key in ("prompts", "lengths")
            },
        }
        for i in range(REPEATS)
    ]


def tried(cost_of: Callable[[int], Cost], work: Work) -> dict[int, Cost]:
    """By rows: from `FIRST` down and up, until the next is slower."""
    found = {FIRST: cost_of(FIRST)}
    for sizes in (ROWS[ROWS.index(FIRST) - 1 :: -1], ROWS[ROWS.index(FIRST) + 1 :]):
        before = FIRST
        for rows in sizes:
            found[rows] = cost_of(rows)
            if found[rows](work) > found[before](work):
                break
            before = rows
    return found


def _cost(generate: Side, work: Work, rows: int) -> Cost:
    one = batches(work, rows)[0]
    some = {**one, "lengths": [[STEPS] * SAMPLES] * len(one["prompts"]), "cap": STEPS}
    result = generate(**some, rows=rows)
    width = max(map(len, one["prompts"]))
    cost = Cost(rows, result["first_s"] / width, (result["seconds"] - result["first_s"]) / (STEPS - 1))
    say(f"  probe: {rows} rows {result['first_s']:.1f} s and {cost.step_s:.2f} s a step: {cost(work):.0f} s")
    return cost


def bench() -> list[dict[str, Any]]:
    """float32, two threads."""
    work = gsm8k_like(PROMPTS, SAMPLES)
    given = {"model": str(MODEL), "dtype": "float32"}
    with (
        Side(OUR_PYTHON, "strop_engine", max_tokens=MAX_TOKENS, **given) as ours,
        Side(OUR_PYTHON, "generate", **given) as theirs,
    ):
        ours(**WARM_UP)
        theirs(**WARM_UP, rows=4)
        costs = tried(lambda rows: _cost(theirs, work, rows), work)
        best = min(costs.values(), key=lambda cost: cost(work))
        reckoned = {cost.rows: round(cost(work), 1) for cost in costs.values()}
        with watched() as details:
            details |= _measured(ours, theirs, work, best)
    details |= {"threads": 2, "prompts": work["source"], "drawn": sum(map(sum, work["lengths"]))}
    details |= {"rows": best.rows, "reckoned_s": reckoned}
    took = details["seconds"]
    return [line_of(NAME, ratio_of(took["generate"], took["strop"]), REPEATS, **details)]


def _measured(ours: Side, theirs: Side, work: Work, best: Cost) -> dict[str, Any]:
    """Seconds of each side for all the work, and their peak memory."""
    todo = parts(work, best.rows)
    left, part_s, peaks = iter(todo), [], {}

    def strop() -> float:
        result = ours(**work)
        peaks["strop"] = result["peak_gib"]
        return float(result["seconds"])

    def generate() -> float:
        part = next(left)
        result = theirs(**part, rows=best.rows)
        peaks["generate"] = result["peak_gib"]
        part_s.append(result["seconds"])
        return float(result["seconds"] * best(work) / best(part))

    took = interleaved({"strop": strop, "generate": generate}, REPEATS)
    share = min(1.0, sum(map(best, todo)) / best(work))
    return {"seconds": took, "part_s": part_s, "share": share, "peak_gib": peaks}


if __name__ == "__main__":
    print_lines(bench())
