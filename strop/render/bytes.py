"""`ByteRenderer`: text as its UTF-8 bytes, with five special tokens; needs no files, for tiny models.

A turn is `role bytes… end-of-turn`, and the model's begins with the role `assistant`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from strop.errors import ConfigError, DataError
from strop.render.messages import as_messages, flat, plain_reply, plain_text, refuse_turns
from strop.render.said import Reply, Said, Turns, conversation, trained_turns
from strop.sample import Message, Prompt

END_OF_TURN = 256
ROLES = {"user": 257, "assistant": 258, "tool": 259, "system": 260}
VOCAB_SIZE = 264
"""Ids 0 to 260, rounded up to a multiple of 8; the last three mean nothing."""
TOKENIZER_CLASS = "StropByteRenderer"
"""`tokenizer_class` in the `tokenizer_config.json` of a model directory that is meant for this renderer."""


class ByteRenderer:
    """Messages ↔ bytes. `chat_template`: false leaves the roles out and shows the text alone. Raises
    ConfigError for `template_kwargs`: the form of a turn has no variables."""

    stop_ids: tuple[int, ...] = (END_OF_TURN,)

    def __init__(
        self, *, chat_template: bool = True, template_kwargs: Mapping[str, Any] | None = None
    ) -> None:
        for name in template_kwargs or {}:
            raise ConfigError(
                f"prompts.chat_template_kwargs.{name}: the byte-level tokenizer has no chat template that "
                "could use it; remove it"
            )
        self._has_roles = chat_template

    def prompt(self, prompt: Prompt) -> list[int]:
        """Roles, bytes and ends of turn, then the assistant's role. Raises DataError for tools and for roles
        that have no token."""
        if not self._has_roles:
            return list(plain_text(prompt).encode())
        if prompt.tools:
            raise DataError(
                f"{prompt.id}: the byte-level renderer cannot show tools; describe them in the prompt"
            )
        return [*_turns(as_messages(prompt), prompt.id), ROLES["assistant"]]

    def follow_up(
        self,
        history: Sequence[Message],  # noqa: ARG002 - the seam passes it; a turn here is the same in any place
        messages: Sequence[Message],
        *,
        last_id: int,
    ) -> list[int]:
        """The end of turn, unless it is drawn already, the messages, and the assistant's role."""
        if not self._has_roles:
            raise refuse_turns()
        closing = [] if last_id == END_OF_TURN else [END_OF_TURN]
        return [*closing, *_turns(flat(messages), "environment"), ROLES["assistant"]]

    def said(self, prompt: Prompt, reply: Reply, *, turns: Turns) -> Said:
        """The same ids; a role is not said, the end of a turn is. Without roles, text and an end of turn."""
        ids = self.prompt(prompt) if not self._has_roles else []
        if not self._has_roles:
            said = [*plain_reply(prompt, reply).encode(), END_OF_TURN]
            return Said([*ids, *said], [False] * len(ids) + [True] * len(said))
        self.prompt(prompt)  # what it refuses
        trained, mask = trained_turns(prompt, reply, turns), list[bool]()
        for place, message in enumerate(conversation(prompt, reply)):
            turn = _turns([message], prompt.id)
            ids += turn
            mask += [False] + [place in trained] * (len(turn) - 1)
        return Said(ids, mask)

    def decode(self, ids: Sequence[int]) -> str:
        """The bytes as text, ones that are not UTF-8 as U+FFFD; ids above 255 are left out."""
        return bytes(i for i in ids if i < END_OF_TURN).decode(errors="replace")


def _turns(messages: Sequence[Message], where: str) -> list[int]:
    ids: list[int] = []
    for message in messages:
        if message["role"] not in ROLES:
            raise DataError(
                f"{where}: the byte-level renderer knows the roles {', '.join(ROLES)}; "
                f"got {message['role']!r}"
            )
        if not isinstance(message.get("content"), str):
            raise DataError(
                f"{where}: the byte-level renderer shows text; a message of {message['role']!r} has none"
            )
        ids += [ROLES[message["role"]], *message["content"].encode(), END_OF_TURN]
    return ids
