"""The renderer seam: the only place that tokenises or decodes."""

from collections.abc import Sequence
from typing import Protocol

from strop.render.said import Reply, Said, Turns
from strop.sample import Message, Prompt


class Renderer(Protocol):
    """Messages ↔ tokens. Ids already in a sample are never rendered again."""

    stop_ids: tuple[int, ...]
    """Ids that end a reply of the model."""

    def prompt(self, prompt: Prompt) -> list[int]:
        """Ids of the whole prompt, up to where the model begins to speak.

        Raises DataError if the prompt renders to no tokens.
        """
        ...

    def follow_up(
        self, history: Sequence[Message], messages: Sequence[Message], *, last_id: int
    ) -> list[int]:
        """Ids to append after a reply that ended with `last_id`, so that the model sees `messages` and
        speaks next: what the template puts after a reply (less the stop id already drawn), the messages,
        and the opening of the next reply. `history`: the messages before the reply.
        """
        ...

    def said(self, prompt: Prompt, reply: Reply, *, turns: Turns) -> Said:
        """Ids of a prompt and of a reply that is given, as the model would have read and drawn them: what the
        assistant says in the reply is trained, or its last turn, each with the end of its turn.

        Raises DataError if the conversation cannot be shown, or shown so that the model would read the same.
        """
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of a reply, without special tokens."""
        ...
