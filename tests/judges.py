"""A judge that says what a test tells it: an engine whose answers are a function of the question."""

from collections.abc import Callable
from typing import Any

import numpy as np

from strop.config.tree import Reward
from strop.engines.base import Completion, Request
from strop.render.bytes import END_OF_TURN, ByteRenderer
from strop.rewards.asking import Host
from strop.rewards.open import open_rewards
from strop.rewards.select import Rewards
from strop.runtime.compute import Compute
from strop.sample import Sample, Status


class Judging:
    """Answers `say(question, seed)`, and remembers what it was asked."""

    def __init__(self, say: Callable[[str, int], str]) -> None:
        self._say = say
        self.requests: list[Request] = []

    @property
    def questions(self) -> list[str]:
        return [ByteRenderer().decode(request.ids.tolist()) for request in self.requests]

    async def generate(self, request: Request) -> Completion:
        self.requests.append(request)
        said = self._say(ByteRenderer().decode(request.ids.tolist()), request.seed)
        ids = np.array([*said.encode(), END_OF_TURN], np.int32)[: request.sampling.max_tokens]
        return Completion(ids, np.full(len(ids), -0.5, np.float32), np.zeros(len(ids), np.int32), "stop")


def judged_by(
    engine: Any, *, seed: int = 0, group: bool = False, retries: int = 2, **options: Any
) -> Rewards:
    """The reward `judge` of a run whose policy is `engine`, and judges itself."""
    section = Reward(fn="judge", group=group, retries=retries, options={"model": "policy", **options})
    return entered(open_rewards(section, seed=seed), engine)


def entered(rewards: Rewards, engine: Any) -> Rewards:
    """The same, in a run whose policy is `engine`."""
    for guest in rewards.guests:
        assert guest.enter(Host(engine, ByteRenderer(), Compute())) is None
    return rewards


def replied(*responses: str, label: Any = 42, prompt: str = "What is 6 * 7?") -> list[Sample]:
    """A group with these responses."""
    return [
        Sample(
            index=index,
            group_id=5,
            prompt_id="p",
            prompt=prompt,
            label=label,
            response=response,
            status=Status.COMPLETED,
        )
        for index, response in enumerate(responses)
    ]


def scored(score: object, critique: str = "Well.") -> str:
    return f"<critique>{critique}</critique><scores>{score}</scores>"


def preferred(verdict: str) -> str:
    return f"<critique>Well.</critique><verdict>{verdict}</verdict>"


def replies_in(question: str) -> list[str]:
    """What stands between the fences of replies, in the order shown."""
    found: list[str] = []
    inside: list[str] | None = None
    for line in question.split("\n"):
        if line.startswith("[begin reply"):
            inside = []
        elif line.startswith("[end reply") and inside is not None:
            found.append("\n".join(inside))
            inside = None
        elif inside is not None:
            inside.append(line)
    return found
