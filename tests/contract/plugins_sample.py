"""What a user might plug in: one of each kind, named in every form by the contract tests."""

import functools

from strop.envs.base import Observation, Step
from strop.sample import Scores


def length(sample, *, scale=1.0):
    """A plain function."""
    return scale * len(sample.response)


async def awaited_length(sample):
    """A coroutine function."""
    return float(len(sample.response))


class Length:
    """An object with options of its own and named scores."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def __call__(self, sample):
        return Scores(self.scale * len(sample.response), {"characters": len(sample.response)})


doubled_length = functools.partial(length, scale=2.0)


class Echo:
    """An environment that repeats the first reply and ends after the second, with a reward."""

    def __init__(self, role="tool"):
        self.role, self.turn = role, 0

    async def start(self, prompt):
        return Observation(({"role": self.role, "content": "go"},))

    async def step(self, reply):
        self.turn += 1
        if self.turn == 2:
            return Step(Observation(), done=True, reward=1.0)
        return Step(Observation(({"role": self.role, "content": reply.text},)), done=False)

    async def close(self):
        pass


def count_up(rng, *, top=99):
    """A procedural source."""
    number = rng.randint(0, top)
    return {"prompt": f"{number}, then?", "label": number + 1}
