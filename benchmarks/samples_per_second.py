"""What a sample costs beside its tokens: the rollout path with an engine that answers at once.

python benchmarks/samples_per_second.py. Steps of short samples, from prompt to reward and ledger, against
coroutines that give way once: the least that anything costs that is played side by side on an event loop.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness import interleaved, line_of, print_lines, ratio_of, watched

from strop.config.tree import Env, Rollout
from strop.engines.base import Completion, Request
from strop.envs.single_turn import SingleTurn
from strop.prompts.procedural import ProceduralSource
from strop.render.bytes import ByteRenderer
from strop.rewards.call import Scorer
from strop.rewards.select import Rewards
from strop.rollout.episode import Parts
from strop.rollout.group import Player
from strop.rollout.rollouts import Rollouts
from strop.runtime.memory import peak_bytes
from strop.sample import Sample
from strop.store.jsonl import Log
from strop.store.ledger import Ledger

NAME = "samples_per_second"
WANT = 0.05
MINUTES = 0.5
PROMPTS, SAMPLES, STEPS, REPEATS = 32, 24, 4, 7
BARE_STEPS = 10 * STEPS
"""So that both sides take about as long."""


class AtOnce:
    """An engine that draws one digit of the request's seed."""

    async def generate(self, request: Request) -> Completion:
        digit = np.array([48 + request.seed % 10], np.int32)
        return Completion(digit, np.full(1, -0.5, np.float32), np.zeros(1, np.int32), "length")


def digit(rng: random.Random) -> dict[str, Any]:
    """A task."""
    wanted = str(rng.randrange(10))
    return {"prompt": f"b{wanted}k", "label": wanted}


def right(sample: Sample) -> float:
    """A plain `def`, as most rewards are."""
    return float(sample.response == sample.label)


class Steps:
    """Rollouts that go on from one call to the next."""

    def __init__(self, folder: Path) -> None:
        parts = Parts(AtOnce(), ByteRenderer(), SingleTurn, Env())  # type: ignore[arg-type]  # has what is used
        scorer = Scorer(right, name="right", timeout_s=30, retries=0, concurrency=64)
        section = Rollout(batch_size=PROMPTS, samples_per_prompt=SAMPLES, max_response_tokens=1)
        self._rollouts = Rollouts(
            Player(parts, Rewards(scorer), None, seed=0),
            ProceduralSource(digit, options={}, seed=0),
            section,
            keep=None,
            ledger=Ledger(Log(folder / "ledger.jsonl")),
        )
        self._buffer = Taken()

    def __call__(self) -> float:
        """Samples a second over some steps."""
        began = time.perf_counter()
        asyncio.run(self._rollouts.fill(self._buffer, range(STEPS)))  # type: ignore[arg-type]
        return STEPS * PROMPTS * SAMPLES / (time.perf_counter() - began)


class Taken:
    """A buffer that always has room: its other side is not measured."""

    async def admit(self, n: int) -> None:
        """At once."""

    async def put(self, groups: object) -> None:
        """Forgets them."""


def bare() -> float:
    """Coroutines a second, those of a step at once."""

    async def steps() -> None:
        for _ in range(BARE_STEPS):
            await asyncio.gather(*(asyncio.sleep(0) for _ in range(PROMPTS * SAMPLES)))

    began = time.perf_counter()
    asyncio.run(steps())
    return BARE_STEPS * PROMPTS * SAMPLES / (time.perf_counter() - began)


def bench() -> list[dict[str, Any]]:
    """Samples a second over coroutines a second."""
    with tempfile.TemporaryDirectory() as folder, watched() as machine:
        sides: dict[str, Callable[[], float]] = {"samples": Steps(Path(folder)), "coroutines": bare}
        for side in sides.values():
            side()
        took = interleaved(sides, REPEATS)
    details = {
        "samples_per_s": median(took["samples"]),
        "microseconds_a_sample": 1e6 / median(took["samples"]),
        "coroutines_per_s": median(took["coroutines"]),
        "peak_gib": peak_bytes() / 2**30,
    }
    return [line_of(NAME, ratio_of(took["samples"], took["coroutines"]), REPEATS, **details, **machine)]


if __name__ == "__main__":
    print_lines(bench())
