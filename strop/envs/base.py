"""The environment seam: what answers the model. Single turn is its one-step case."""

from dataclasses import dataclass
from typing import Protocol

from strop.sample import Message, Prompt


@dataclass(frozen=True, slots=True)
class Reply:
    """One turn of the model. The text is a view of the ids, for the environment to read."""

    text: str
    is_truncated: bool
    """It ran out of tokens before it stopped: the last reply of the episode, whatever the answer."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What the model is shown next: messages that the renderer turns into ids (never trained)."""

    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """The environment's answer to one reply. A reward, given with the last one, stands in for `reward.fn`."""

    observation: Observation
    done: bool
    reward: float | None = None


class Environment(Protocol):
    """One episode of one sample; made anew for each."""

    async def start(self, prompt: Prompt) -> Observation:
        """Messages that follow the prompt before the model speaks; usually none."""
        ...

    async def step(self, reply: Reply) -> Step:
        """Answer the model."""
        ...

    async def close(self) -> None:
        """Let go of what the episode holds; called exactly once, also after a failure."""
        ...
