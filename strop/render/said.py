"""What the assistant says in a conversation that is given: which of its ids are trained.

Masks go by position, never by the value of an id: the end of a turn that is also the padding id is trained
like any other token.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from strop.errors import DataError
from strop.render.messages import as_messages, flat
from strop.sample import Message, Prompt

Reply = str | Sequence[Message]
"""Text, or messages of which the first is the assistant's."""
Turns = Literal["all", "last"]


@dataclass(frozen=True, slots=True)
class Said:
    """Ids of a prompt and what follows it."""

    ids: list[int]
    mask: list[bool]
    """Which of them the assistant says, the end of its turn included."""

    @property
    def prompt_length(self) -> int:
        """Tokens before the first that is trained."""
        return self.mask.index(True)

    @property
    def drawn(self) -> "Said":
        """Up to the last that is trained: what a template puts behind the end of a turn no model draws."""
        return self.cut(len(self.mask) - self.mask[::-1].index(True))

    def cut(self, max_tokens: int) -> "Said":
        """Its first tokens."""
        return Said(self.ids[:max_tokens], self.mask[:max_tokens])


def replies(reply: Reply) -> list[Message]:
    """The reply as messages; text is one of the assistant."""
    return [{"role": "assistant", "content": reply}] if isinstance(reply, str) else flat(reply)


def conversation(prompt: Prompt, reply: Reply) -> list[Message]:
    """The whole of it."""
    return [*as_messages(prompt), *replies(reply)]


def trained_turns(prompt: Prompt, reply: Reply, turns: Turns) -> list[int]:
    """Places in `conversation` of the messages that are trained. Raises DataError when the reply does not
    begin with the assistant, or nothing is said in it."""
    before, said = len(as_messages(prompt)), replies(reply)
    if not said or said[0]["role"] != "assistant":
        got = repr(said[0]["role"]) if said else "nothing"
        raise DataError(f"{prompt.id}: a response begins with a message of the role 'assistant', got {got}")
    places = [before + place for place, message in enumerate(said) if message["role"] == "assistant"]
    return places if turns == "all" else places[-1:]


def by_cuts(text: str, spans: Sequence[tuple[int, int]], encode: Callable[[str], list[int]]) -> Said:
    """Ids of `text`, of which the parts `spans` (from, to; rising) are said.

    A token that reaches over the beginning of a span is divided there: a model that has read up to it has
    read whole tokens.
    """
    cuts = [cut for span in spans for cut in span]
    whole = encode(text)
    heads = [encode(text[:cut]) for cut in cuts]
    if all(whole[: len(head)] == head for head in heads):
        ids, ends = whole, [len(head) for head in heads]
    else:
        parts = [encode(text[a:b]) for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        ids = [id for part in parts for id in part]
        ends = [sum(map(len, parts[: place + 1])) for place in range(len(cuts))]
    mask = [False] * len(ids)
    for begin, end in zip(ends[::2], ends[1::2], strict=True):
        mask[begin:end] = [True] * (end - begin)
    return Said(ids, mask)
