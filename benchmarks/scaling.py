"""How the time of a training step and of a rollout grows with samples, prompt length and response length.

python benchmarks/scaling.py. One axis at a time is ×1, ×2, ×4, ×8, the others stay at ×1. `seconds` are
medians; `time` and `work` are slopes of their logarithms over that of the size, least squares through all
four points: 1 is linear, 2 quadratic. Work is FLOPs, attention among them: prompts once, each response token
over all that it sees. As fixed costs flatten a slope, and most at ×1, the exponents of time in work are what
is judged: through all points (`exponent`), and from ×4 to ×8 alone (`last`), where they hide least. The ratio
is one over the worst of these: 1 when nothing grows faster than its work, 0.5 when something is quadratic
in it.

The model is random, four layers of 256, and small on purpose: at a prompt of 1024 tokens attention is a
quarter of its work, as it would be in SmolLM2 at twice that, so that what is quadratic and need not
be is seen. The rollout is the engine's: its requests arrive at once, and none ends before its length.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from harness import OUR_PYTHON, WARM_UP, Side, interleaved, line_of, print_lines, watched
from training import Step, batch_of, flops, peak_gib, trunk_flops

from strop.config.tree import Train
from strop.nn.loading import CausalLM, load_model
from strop.nn.tiny import make_tiny
from strop.runtime.memory import GIB, peak_bytes
from strop.train.packing import pack

NAME = "scaling"
WANT = 0.9
MINUTES = 4
REPEATS = 3
TIMES = (1, 2, 4, 8)
AXES = ("samples", "prompt", "response")
MAX_TOKENS = 65536


@dataclass(frozen=True, slots=True)
class Size:
    """Groups of 8 samples."""

    groups: int = 4
    prompt: int = 128
    response: int = 64

    def along(self, axis: str, times: int) -> "Size":
        """More groups, or longer ones."""
        match axis:
            case "samples":
                return replace(self, groups=times * self.groups)
            case "prompt":
                return replace(self, prompt=times * self.prompt)
        return replace(self, response=times * self.response)

    @property
    def work(self) -> dict[str, Any]:
        """As `harness.gsm8k_like` gives it."""
        rng = np.random.default_rng(0)
        prompts = [rng.integers(0, 256, self.prompt).tolist() for _ in range(self.groups)]
        return {"prompts": prompts, "lengths": [[self.response] * 8] * self.groups, "cap": self.response}


def rollout_flops(made: CausalLM, size: Size) -> float:
    """The last token of a response is drawn, and not fed."""
    fed, samples = size.response - 1, size.groups * 8
    prompts = trunk_flops(made, size.prompt, size.prompt * (size.prompt + 1) // 2)
    response = trunk_flops(made, fed, fed * size.prompt + fed * (fed + 1) // 2)
    return size.groups * prompts + samples * (response + 2.0 * made.head_VD.numel() * size.response)


def step_flops(made: CausalLM, size: Size) -> float:
    """Forward and backward."""
    data = batch_of(size.work, made.vocab_size)
    packs = pack(data, range(len(data.samples)), max_tokens=Train().max_tokens_per_device)
    return sum(flops(made, packed) for packed in packs)


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Of the line through the logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def growth(flops_of: Callable[[Size], float], took: dict[Size, float]) -> dict[str, dict[str, Any]]:
    """By axis."""
    found = {}
    for axis in AXES:
        sizes = [Size().along(axis, times) for times in TIMES]
        seconds, work = [took[size] for size in sizes], [flops_of(size) for size in sizes]
        found[axis] = {
            "seconds": seconds,
            "gflop": [w / 1e9 for w in work],
            "time": slope(TIMES, seconds),
            "work": slope(TIMES, work),
            "exponent": slope(work, seconds),
            "last": slope(work[-2:], seconds[-2:]),
        }
    return found


def _rollouts(folder: Path) -> Side:
    return Side(OUR_PYTHON, "strop_engine", model=str(folder), dtype="float32", max_tokens=MAX_TOKENS)


def _timed(made: CausalLM, rollouts: Side) -> dict[str, dict[Size, float]]:
    """Medians, of `step` and `rollout`."""
    sizes = list(dict.fromkeys(Size().along(axis, times) for axis in AXES for times in TIMES))
    step, data = Step(made), {size: batch_of(size.work, made.vocab_size) for size in sizes}
    step(data[Size()])
    sides = {}
    for size in sizes:
        sides[f"step {size}"] = lambda size=size: step(data[size])
        sides[f"rollout {size}"] = lambda size=size: rollouts(**size.work)["seconds"]
    took = interleaved(sides, REPEATS)
    return {name: {size: median(took[f"{name} {size}"]) for size in sizes} for name in ("step", "rollout")}


def _peaks(folder: Path) -> dict[str, float]:
    """GiB at the ×8 of each axis, each in a process of its own."""
    peaks = {}
    for axis in AXES:
        peaks[f"step {axis}"] = peak_gib(__file__, str(folder), axis)
        with _rollouts(folder) as side:
            peaks[f"rollout {axis}"] = side(**Size().along(axis, TIMES[-1]).work)["peak_gib"]
    return peaks


def bench() -> list[dict[str, Any]]:
    """float32, two threads."""
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as scratch:
        folder = make_tiny(Path(scratch) / "model", hidden=256, layers=4)
        made = load_model(folder, torch.float32)
        with _rollouts(folder) as rollouts:
            rollouts(**WARM_UP)
            with watched() as details:
                took = _timed(made, rollouts)
        details |= {"threads": 2, "peak_gib": _peaks(folder)}
    details["step"] = growth(lambda size: step_flops(made, size), took["step"])
    details["rollout"] = growth(lambda size: rollout_flops(made, size), took["rollout"])
    grown = [details[name][axis] for name in ("step", "rollout") for axis in AXES]
    worst = max(max(axis["exponent"], axis["last"]) for axis in grown)
    return [line_of(NAME, 1 / worst, REPEATS, **details)]


def _largest_step(folder: Path, axis: str) -> None:
    torch.set_num_threads(2)
    made = load_model(folder, torch.float32)
    Step(made)(batch_of(Size().along(axis, TIMES[-1]).work, made.vocab_size))


if __name__ == "__main__":
    if sys.argv[1:]:
        _largest_step(Path(sys.argv[1]), sys.argv[2])
        print(peak_bytes() / GIB)
    else:
        print_lines(bench())
