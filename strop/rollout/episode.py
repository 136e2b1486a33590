"""One sample from prompt to last token: the model speaks, the environment answers, ids are only appended."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from strop.config.tree import Env
from strop.engines.base import Completion, Engine, Finish, Request
from strop.envs.base import Environment, Reply, Step
from strop.errors import EnvironmentFailed, boundary
from strop.render.base import Renderer
from strop.sample import Message, Prompt, Sample, Sampling, Status, Tokens

T = TypeVar("T")

_STATUS: dict[Finish, Status] = {
    "stop": Status.COMPLETED,
    "length": Status.TRUNCATED,
    "abort": Status.ABORTED,
}


@dataclass(frozen=True, slots=True)
class Parts:
    """What an episode is played with."""

    engine: Engine
    renderer: Renderer
    make_env: Callable[[], Environment]
    env: Env


async def play(
    sample: Sample, prompt: Prompt, sampling: Sampling, parts: Parts, *, seed: int
) -> float | None:
    """Fill `sample` with one episode; returns the reward if the environment gave one.

    Raises EnvironmentFailed when the environment does; the tokens so far stay on the sample.
    """
    sample.sampling = sampling
    episode = _Episode(sample, prompt, parts, seed)
    try:
        return await episode.run(sampling)
    finally:
        await episode.close()
        sample.response = parts.renderer.decode(sample.response_tokens.ids.tolist())


class _Episode:
    def __init__(self, sample: Sample, prompt: Prompt, parts: Parts, seed: int) -> None:
        self._sample, self._prompt, self._parts, self._seed = sample, prompt, parts, seed
        self._env = parts.make_env()

    async def run(self, sampling: Sampling) -> float | None:
        opening = await self._ask(self._env.start(self._prompt))
        history = [*_messages(self._prompt), *opening.messages]
        self._open(history if opening.messages else None)
        for turn in range(self._parts.env.max_turns):
            budget = sampling.max_tokens - self._sample.response_length
            completion = await self._speak(turn, replace(sampling, max_tokens=budget))
            self._sample.status = _STATUS[completion.finish]
            if completion.finish != "stop":
                return None
            text = self._parts.renderer.decode(completion.ids.tolist())
            step = await self._ask(self._env.step(Reply(text, is_truncated=False)))
            if step.done:
                return step.reward
            answered = self._answer(history, step, last_id=int(completion.ids[-1]), sampling=sampling)
            history += [{"role": "assistant", "content": text}, *step.observation.messages]
            if not answered:
                break
        self._sample.status = Status.TRUNCATED  # out of turns or of tokens with the environment unanswered
        return None

    def _open(self, messages: list[Message] | None) -> None:
        """Put the prompt's ids down, with the environment's opening messages if there are any."""
        prompt = replace(self._prompt, messages=tuple(messages)) if messages else self._prompt
        ids = self._parts.renderer.prompt(prompt)
        self._sample.sequence, self._sample.prompt_length = Tokens.context(ids), len(ids)

    async def _speak(self, turn: int, sampling: Sampling) -> Completion:
        sample, began = self._sample, time.perf_counter()
        request = Request(
            id=f"{sample.policy}/{sample.prompt_id}/{sample.index}/{turn}",
            ids=np.asarray(sample.sequence.ids),
            sampling=sampling,
            seed=self._seed,
        )
        completion = await self._parts.engine.generate(request)
        sample.sequence = sample.sequence + Tokens.drawn(completion.ids, completion.logp, completion.versions)
        _count(sample, "generate_s", began)
        return completion

    def _answer(self, history: list[Message], step: Step, *, last_id: int, sampling: Sampling) -> bool:
        """Append the environment's messages; False if the model would then have no token left."""
        ids = self._parts.renderer.follow_up(history, step.observation.messages, last_id=last_id)
        if self._sample.response_length + len(ids) >= sampling.max_tokens:
            return False
        self._sample.sequence = self._sample.sequence + Tokens.context(ids)
        return True

    async def _ask(self, call: Awaitable[T]) -> T:
        began = time.perf_counter()
        with boundary(EnvironmentFailed, f"environment {self._parts.env.type}"):
            async with asyncio.timeout(self._parts.env.timeout_s):
                answer = await call
        _count(self._sample, "environment_s", began)
        return answer

    async def close(self) -> None:
        with boundary(EnvironmentFailed, f"environment {self._parts.env.type}"):
            await self._env.close()


def _messages(prompt: Prompt) -> list[Message]:
    if isinstance(prompt.messages, str):
        return [{"role": "user", "content": prompt.messages}]
    return list(prompt.messages)


def _count(sample: Sample, name: str, began: float) -> None:
    sample.timing[name] = sample.timing.get(name, 0.0) + time.perf_counter() - began
