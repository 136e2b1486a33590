"""A task whose rewards differ from the first sample on, and a reward that can be held up from outside."""

import os
import random
import time
from pathlib import Path
from typing import Any

from strop import Sample
from strop.envs.base import Observation, Reply, Step
from strop.envs.calculator import Calculator
from strop.sample import Prompt


def some_letters(rng: random.Random) -> dict[str, Any]:
    """Three to eight letters."""
    return {"prompt": "".join(rng.choices("abcdefgh", k=rng.randint(3, 8))), "label": "x"}


class Sums:
    """The calculator, asked for a sum whatever the first reply was: a random model asks for none."""

    def __init__(self) -> None:
        self._calculator = Calculator()
        self._turn = 0

    async def start(self, prompt: Prompt) -> Observation:
        return await self._calculator.start(prompt)

    async def step(self, reply: Reply) -> Step:
        self._turn += 1
        text = f"<calc>{len(reply.text)} + 1</calc>" if self._turn == 1 else reply.text
        return await self._calculator.step(Reply(text, is_truncated=reply.is_truncated))

    async def close(self) -> None:
        await self._calculator.close()


def high_bytes(sample: Sample) -> float:
    """1 if most of what was drawn is above 127: half of the groups or so have equal rewards.

    With STROP_TEST_HOLD = "VERSION DIRECTORY", every second sample drawn with that version of the weights
    leaves a file `held` there and waits for a file `go`.
    """
    drawn = sample.sequence.ids[sample.sequence.sampled]
    version, _, place = os.environ.get("STROP_TEST_HOLD", "").partition(" ")
    if version and sample.index % 2 and sample.sequence.versions.max() == int(version):
        Path(place, "held").touch()
        while not Path(place, "go").exists():
            time.sleep(0.005)
    return float((drawn > 127).mean() > 0.5)
