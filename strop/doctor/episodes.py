"""One episode of an environment with a fixed reply, and what can be wrong with it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from strop.envs.base import Environment, Observation, Reply, Step
from strop.errors import EnvironmentFailed, Recorded, boundary
from strop.sample import Message, Prompt


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one episode."""

    shown: tuple[tuple[Message, ...], ...]
    """Messages of each turn."""
    reward: float | None
    """The sum of what it gave."""
    is_done: bool
    error: str | None = None
    """What broke the contract, if anything did."""

    @property
    def said(self) -> str:
        """In words."""
        turns = len(self.shown) - 1
        end = "done" if self.is_done else "not done"
        given = "no reward of its own" if self.reward is None else f"reward {self.reward:g}"
        return f"{end} after {turns} replies, {given}"


async def play_once(
    make_env: Callable[[], Environment], prompt: Prompt, text: str, *, max_turns: int, timeout_s: float
) -> Outcome:
    """Start, the same reply until it is done, close, in `timeout_s` altogether. What the environment raises
    is in the outcome."""
    shown: list[tuple[Message, ...]] = []
    given: list[float] = []
    is_done = False
    try:
        with boundary(EnvironmentFailed, "the environment"):
            async with asyncio.timeout(timeout_s):
                env = make_env()
                try:
                    shown.append(await _opening(env, prompt))
                    while not is_done and len(shown) <= max_turns:
                        step = await _step(env, text)
                        shown.append(tuple(step.observation.messages))
                        is_done = step.done
                        given += [] if step.reward is None else [step.reward]
                finally:
                    await env.close()
    except Recorded as failed:
        return Outcome(tuple(shown), None, is_done=is_done, error=str(failed))
    return Outcome(tuple(shown), sum(given) if given else None, is_done=is_done)


async def _opening(env: Environment, prompt: Prompt) -> tuple[Message, ...]:
    opening: object = await env.start(prompt)
    if not isinstance(opening, Observation):
        raise TypeError(f"start returned {opening!r}; expected an Observation")
    return tuple(opening.messages)


async def _step(env: Environment, text: str) -> Step:
    step: object = await env.step(Reply(text, is_truncated=False))
    if not isinstance(step, Step):
        raise TypeError(f"step returned {step!r}; expected a Step")
    return step


def gold(prompt: Prompt) -> str:
    """The label as a reply."""
    return "" if prompt.label is None else str(prompt.label)
