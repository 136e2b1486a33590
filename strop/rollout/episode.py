"""One sample from prompt to last token: the model speaks, the environment answers, ids are only appended."""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from numpy.typing import NDArray

from strop.config.tree import Env
from strop.engines.base import Completion, Engine, Finish, Request
from strop.envs.base import Environment, Observation, Reply, Step
from strop.errors import DataError, EnvironmentFailed, boundary
from strop.kept import OFFSETS, Kept
from strop.render.base import Renderer
from strop.rollout.deadline import answer
from strop.rollout.step_rewards import TurnRewards
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
    max_context_tokens: int | None = None
    """Prompt and response together at most."""
    vocabulary: int = 2**31 - 1
    """Ids that can be trained are below it."""
    generate_timeout_s: float = 600.0
    """For one call of `rollout.generate`."""


async def play(sample: Sample, prompt: Prompt, opening: Tokens, *, parts: Parts, seed: int) -> float | None:
    """Fill `sample`, whose `sampling` is set, with one episode; returns the environment's reward, if any.

    `opening`: the rendered prompt. Raises EnvironmentFailed when the environment does, TooLong when the
    engine cannot hold the sequence; the tokens so far stay on the sample.
    """
    assert sample.sampling is not None
    episode = _Episode(sample, parts, seed)
    try:
        given = await episode.run(prompt, opening, sample.sampling)
    except BaseException:
        with suppress(EnvironmentFailed):  # what went wrong first is what to tell
            await episode.close()
        raise
    else:
        await episode.close()
        return given
    finally:
        sample.response = episode.response()


class _Episode:
    def __init__(self, sample: Sample, parts: Parts, seed: int) -> None:
        self._sample, self._parts, self._seed = sample, parts, seed
        self._what = f"environment {parts.env.type}"
        self._env: Environment | None = None
        self._reply = ""
        """The latest."""
        self._num_replied = 0
        """Tokens of it."""
        self._turns = TurnRewards()

    async def run(self, prompt: Prompt, opening: Tokens, sampling: Sampling) -> float | None:
        with boundary(EnvironmentFailed, self._what):
            self._env = env = self._parts.make_env()
        said = await self._ask(partial(env.start, prompt), Observation)
        history = [*_messages(prompt), *said.messages]
        self._open(prompt, opening, history if said.messages else None)
        self._sample.sampling = sampling = self._within_context(sampling)
        for turn in range(self._parts.env.max_turns):
            budget = sampling.max_tokens - self._sample.response_length
            if budget < 1:  # the prompt alone fills rollout.max_context_tokens
                break
            completion = await self._speak(turn, _with_budget(sampling, budget))
            self._sample.status = _STATUS[completion.finish]
            if completion.finish == "abort":
                return None
            self._reply = text = self._parts.renderer.decode(completion.ids.tolist())
            self._num_replied = len(completion.ids)
            reply = Reply(text, is_truncated=completion.finish == "length")
            step = await self._ask(partial(env.step, reply), Step)
            if step.reward is not None:
                self._turns.add(step.reward, sample=self._sample)
            if step.done or reply.is_truncated:
                return self._turns.total
            if not self._answer(history, step, last_id=int(completion.ids[-1]), sampling=sampling):
                break
            history += [{"role": "assistant", "content": text}, *step.observation.messages]
        self._sample.status = Status.TRUNCATED  # out of turns or of tokens with the environment unanswered
        return self._turns.total

    def response(self) -> str:
        """The text of all that follows the prompt."""
        sample = self._sample
        if sample.response_length == self._num_replied:  # one reply and nothing else: it was decoded before
            return self._reply
        return self._parts.renderer.decode(sample.sequence.ids[sample.prompt_length :].tolist())

    def _open(self, prompt: Prompt, opening: Tokens, messages: list[Message] | None) -> None:
        """Put the prompt's ids down, with the environment's opening messages if there are any."""
        if messages:
            whole = replace(prompt, messages=tuple(messages))
            opening = Tokens.context(self._rendered(lambda: self._parts.renderer.prompt(whole)))
        self._sample.sequence, self._sample.prompt_length = opening, len(opening)

    def _within_context(self, sampling: Sampling) -> Sampling:
        """With the budget that the prompt leaves, now that it has the environment's opening."""
        most = self._parts.max_context_tokens
        if most is None:
            return sampling
        return _with_budget(sampling, min(sampling.max_tokens, most - self._sample.prompt_length))

    async def _speak(self, turn: int, sampling: Sampling) -> Completion:
        sample, began = self._sample, time.perf_counter()
        request = Request(
            id=f"{sample.policy}/{sample.prompt_id}/{sample.index}/{turn}",
            ids=sample.sequence.ids,
            sampling=sampling,
            seed=self._seed,
        )
        completion = await self._parts.engine.generate(request)
        self._append(Tokens.drawn(completion.ids, completion.logp, completion.versions), completion.extras)
        _count(sample, "generate_s", began)
        return completion

    def _answer(self, history: list[Message], step: Step, *, last_id: int, sampling: Sampling) -> bool:
        """Append the environment's messages; False if the model would then have no token left."""
        messages = step.observation.messages
        ids = self._rendered(lambda: self._parts.renderer.follow_up(history, messages, last_id=last_id))
        if self._sample.response_length + len(ids) >= sampling.max_tokens:
            return False
        self._append(Tokens.context(ids), {})
        return True

    def _append(self, tokens: Tokens, extras: dict[str, NDArray[Any]]) -> None:
        """Kept sets come with drawn tokens or not at all; the environment's tokens have empty ones."""
        sample = self._sample
        if OFFSETS in extras or OFFSETS in sample.extras:
            before = Kept.of_extras(sample.extras, sample.response_length)
            added = Kept.of_extras(extras, len(tokens))
            sample.extras.update(Kept.joined([before, added]).as_extras())
        sample.sequence = sample.sequence + tokens

    def _rendered(self, render: Callable[[], list[int]]) -> list[int]:
        """Ids of messages that the environment made: what is wrong with them is its failure."""
        try:
            return render()
        except DataError as error:
            raise EnvironmentFailed(f"{self._what}: {error}") from error

    async def _ask(self, call: Callable[[], Awaitable[T]], kind: type[T]) -> T:
        began = time.perf_counter()

        async def checked() -> T:
            given = await call()
            if not isinstance(given, kind):
                raise TypeError(f"expected {kind.__name__}, got {given!r}")
            return given

        given = await self._within(checked, self._what)
        _count(self._sample, "environment_s", began)
        return given

    async def _within(self, call: Callable[[], Awaitable[T]], what: str) -> T:
        seconds = self._parts.env.timeout_s
        return await answer(call, seconds=seconds, error=EnvironmentFailed, what=what)

    async def close(self) -> None:
        if self._env is not None:
            await self._within(self._env.close, f"{self._what}: close")


def _messages(prompt: Prompt) -> list[Message]:
    if isinstance(prompt.messages, str):
        return [{"role": "user", "content": prompt.messages}]
    return list(prompt.messages)


def _with_budget(sampling: Sampling, max_tokens: int) -> Sampling:
    return sampling if max_tokens == sampling.max_tokens else replace(sampling, max_tokens=max_tokens)


def _count(sample: Sample, name: str, began: float) -> None:
    sample.timing[name] = sample.timing.get(name, 0.0) + time.perf_counter() - began
