"""Whole steps of GRPO against TRL 1.16's GRPOTrainer: tokens generated a second, from prompts to new weights.

python benchmarks/grpo_vs_trl.py. Both train one model on the same prompts in the same order with one reward,
and report what they drew: responses end where the model ends them, so lengths differ a little. TRL has its
best micro-batch, and in the second line each side has its best dtype; short probes of one cold step decide.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from harness import MODEL, OUR_PYTHON, TRL_PYTHON, Side, interleaved, line_of, print_lines, ratio_of, watched
from problems import problems

NAME = "grpo_vs_trl"
WANT = 3
MINUTES = 15
REPEATS, PROMPTS, SAMPLES, CAP, ROWS = 3, 4, 8, 128, 64
BATCHES, DTYPES = (4, 8, 16), ("float32", "bfloat16")
PROBE = {"prompts": 2, "samples": 8, "cap": 16}
PROBE_DTYPES = {"prompts": 1, "samples": 2, "cap": 16}
"""Less, as processors without bfloat16 products compute it many times as slowly."""


@dataclass(slots=True)
class Steps:
    """What one side did, step by step; called for one more, it returns the tokens generated a second."""

    side: Side
    seconds: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    prompt_tokens: list[int] = field(default_factory=list)
    spread: list[float] = field(default_factory=list)
    longest: int = 0
    peak_gib: float = 0.0

    def __call__(self) -> float:
        done = self.side()
        self.seconds.append(done["seconds"])
        self.tokens.append(done["tokens"])
        self.prompt_tokens.append(done["prompt_tokens"])
        self.spread.append(done["spread"])
        self.longest = max(self.longest, done["longest"])
        self.peak_gib = done["peak_gib"]
        return float(done["tokens"] / done["seconds"])


def _sides(file: Path) -> dict[str, Callable[..., Side]]:
    """Both programs on the prompts of `file`; each takes `dtype`, `batch` (TRL's) and the size of a step."""

    def side(python: Path, program: str) -> Callable[..., Side]:
        settings: dict[str, Any] = {"model": str(MODEL), "rows": str(file), "lr": 1e-6, "steps": 1000}
        size = {"prompts": PROMPTS, "samples": SAMPLES, "cap": CAP}
        return lambda **given: Side(python, program, **{**settings, **size, **given})

    return {"strop": side(OUR_PYTHON, "strop_grpo"), "trl": side(TRL_PYTHON, "trl_grpo")}


def _first_step(side: Side) -> float:
    """Seconds."""
    with side:
        return float(side()["seconds"])


def _probed(side: Callable[..., Side]) -> dict[str, float]:
    """Seconds by dtype."""
    return {dtype: _first_step(side(dtype=dtype, batch=2, **PROBE_DTYPES)) for dtype in DTYPES}


def _line(sides: dict[str, Callable[..., Side]], dtypes: dict[str, str], batch: int) -> dict[str, Any]:
    with ExitStack() as stack:
        steps = {
            name: Steps(stack.enter_context(side(dtype=dtypes[name], batch=batch)))
            for name, side in sides.items()
        }
        for once in steps.values():
            once()
        with watched() as details:
            rates = interleaved(steps, REPEATS)
    strop, trl = steps["strop"], steps["trl"]
    assert strop.prompt_tokens == trl.prompt_tokens, "the sides were not given the same prompts"
    assert min(strop.spread + trl.spread) > 0, "nothing was learnt in a step: rewards were equal"
    drawn = {name: side.tokens[1:] for name, side in steps.items()}
    details |= {"dtype": dtypes, "threads": 2, "prompts": PROMPTS, "samples": SAMPLES, "cap": CAP}
    details |= {
        "tokens_per_s": rates,
        "seconds": {name: side.seconds[1:] for name, side in steps.items()},
        "mean_response": {name: fmean(tokens) / (PROMPTS * SAMPLES) for name, tokens in drawn.items()},
        "longest_response": {name: side.longest for name, side in steps.items()},
        "micro_batch_of_trl": batch,
        "peak_gib": {name: side.peak_gib for name, side in steps.items()},
    }
    return line_of(NAME, ratio_of(rates["strop"], rates["trl"]), REPEATS, **details)


def bench() -> Iterator[dict[str, Any]]:
    """Both in float32, then each in its best dtype: the same figures again where that is float32."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "rows.jsonl"
        wanted = problems(os.environ.get("STROP_DATA"), ROWS)
        file.write_text("".join(json.dumps(row) + "\n" for row in wanted))
        sides = _sides(file)
        batches = {n: _first_step(sides["trl"](dtype="float32", batch=n, **PROBE)) for n in BATCHES}
        batch = min(batches, key=lambda n: batches[n])
        dtypes = {name: _probed(side) for name, side in sides.items()}
        probes = {"probe_s_of_micro_batches": batches, "probe_s_of_dtypes": dtypes}
        floats = dict.fromkeys(sides, "float32")
        best = {
            name: min(tried, key=lambda dtype, tried=tried: tried[dtype]) for name, tried in dtypes.items()
        }
        line = _line(sides, floats, batch)
        yield _told(line, compared="float32 both", **probes)
        if best != floats:
            line = _line(sides, best, batch)
        yield _told(line, compared="each at its best dtype", **probes)


def _told(line: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**line, "details": {**more, **line["details"]}}


if __name__ == "__main__":
    print_lines(bench())
