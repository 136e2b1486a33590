"""An engine that says what it is told, so that a test knows every token; and a player around it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from strop.config.tree import Env
from strop.engines.base import Completion, Finish, Request
from strop.envs.single_turn import SingleTurn
from strop.render.bytes import END_OF_TURN, ByteRenderer
from strop.rewards.call import Scorer
from strop.rewards.select import Rewards
from strop.rollout.custom import Generate
from strop.rollout.episode import Parts
from strop.rollout.group import Player, new_group
from strop.rollout.hooks import Hooks
from strop.sample import Prompt, Sample, Sampling

VERSION = 3
"""Of the weights of every scripted token."""
LOGP = -0.25
"""Of every scripted token."""
PROMPT = Prompt(id="p", messages="What is 6 * 7?", label=42)


class Scripted:
    """Replies with the bytes of `replies`, one a request, and an end of turn; cut at the request's budget."""

    def __init__(self, *replies: str, finish: Finish | None = None) -> None:
        self._replies, self._finish = list(replies), finish
        self.requests: list[Request] = []

    async def generate(self, request: Request) -> Completion:
        self.requests.append(request)
        said = [*self._replies.pop(0).encode(), END_OF_TURN]
        ids = np.array(said[: request.sampling.max_tokens], np.int32)
        finish: Finish = "stop" if len(ids) == len(said) else "length"
        logp, versions = np.full(len(ids), LOGP, np.float32), np.full(len(ids), VERSION, np.int32)
        return Completion(ids, logp, versions, self._finish or finish)


class Noise:
    """Replies with four bytes that are a function of the request's seed, then stops."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def generate(self, request: Request) -> Completion:
        self.requests.append(request)
        drawn = np.random.default_rng(request.seed).integers(97, 123, 4)
        ids = np.array([*drawn, END_OF_TURN], np.int32)[: request.sampling.max_tokens]
        return Completion(ids, np.full(len(ids), LOGP, np.float32), np.zeros(len(ids), np.int32), "stop")


Worth = Callable[[Sample], float | Awaitable[float]]


def right(sample: Sample) -> float:
    return float(sample.response.strip() == str(sample.label))


def player_of(
    engine: Any,
    *,
    make_env: Callable[[], Any] = SingleTurn,
    generate: Generate | None = None,
    reward: Worth = right,
    generate_timeout_s: float = 5.0,
    hooks: Hooks | None = None,
    **env: Any,
) -> Player:
    """A player over the byte-level renderer. `env`: keys of the `env` section."""
    section = Env(**{"type": "mine", **env})
    parts = Parts(
        engine, ByteRenderer(), make_env, section, generate_timeout_s=generate_timeout_s, vocabulary=264
    )
    scorer = Scorer(reward, name="mine", timeout_s=5, retries=0, concurrency=8)
    return Player(parts, Rewards(scorer), generate, seed=0, hooks=hooks or Hooks())


async def finished(player: Player, *, max_tokens: int = 60, prompt: Prompt = PROMPT, step: int = 0) -> Sample:
    """One sample of `prompt`, played and rewarded."""
    (sample,) = await finished_group(player, size=1, max_tokens=max_tokens, prompt=prompt, step=step)
    return sample


async def finished_group(
    player: Player, *, size: int, max_tokens: int = 60, prompt: Prompt = PROMPT, step: int = 0
) -> Sequence[Sample]:
    group = new_group(0, prompt, first_index=0, size=size)
    await player.finish(group, Sampling(max_tokens=max_tokens), purpose="sample", step=step)
    return group.samples
