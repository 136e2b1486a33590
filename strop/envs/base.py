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

    def __post_init__(self) -> None:
        given: object = self.messages
        if not (isinstance(given, tuple | list) and all(_is_message(message) for message in given)):
            raise TypeError(f"expected messages ({{'role': …, 'content': text}}, …), got {given!r}")


@dataclass(frozen=True, slots=True)
class Step:
    """The environment's answer to one reply. Rewards stand in for `reward.fn`: what it gives with the last
    reply, or the sum of what it gives with several."""

    observation: Observation
    done: bool
    reward: float | None = None

    def __post_init__(self) -> None:
        given: object = self.observation
        if not isinstance(given, Observation):
            raise TypeError(f"expected an Observation for the model, got {given!r}")


def _is_message(given: object) -> bool:
    if not (isinstance(given, dict) and isinstance(given.get("role"), str)):
        return False
    content = given.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    return all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in parts)


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
