"""One row of supervised or preference data → a `Prompt` whose label holds what was said: role → reply.

A reply is text, or messages of which the first is the assistant's.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from strop.config.offline import TARGET
from strop.errors import DataError
from strop.plugins import nearest
from strop.prompts.given_keys import GivenKeys
from strop.prompts.rows import Keys, metadata_of, said_in, shown, surrounded, tools_of
from strop.sample import Message, Prompt, Role

Said = str | tuple[Message, ...]


def make_given(
    row: Mapping[str, Any], keys: Keys, *, id: str, where: str, has: Collection[str] | None = None
) -> Prompt:
    """The prompt of a row, with its replies. Raises DataError, opened by `where` (such as `data.jsonl:17`).

    `has`: every field of the row, when `row` holds only some of them.
    """
    assert keys.given is not None, "only rows of such data are read here"
    fields = _Fields(row, keys, keys.given, where, tuple(row.keys() if has is None else has))
    replies: Mapping[Role, Said] | Mapping[str, Said]
    match keys.given.shape:
        case "texts":
            prompt, replies = fields.text()
        case "pairs":
            prompt, replies = fields.pair()
        case "marked":
            prompt, replies = fields.marked()
        case "ranked":
            prompt, replies = fields.ranked()
        case "scored":
            prompt, replies = fields.scored()
    return Prompt(
        id=id,
        messages=prompt,
        label={
            str(role): reply if isinstance(reply, str) else list(reply) for role, reply in replies.items()
        },
        metadata=metadata_of(row, keys, where=where) | fields.marks(),
        tools=tools_of(row.get(keys.tools), where=f"{where}: {keys.tools!r}"),
    )


class _Fields:
    """One row, field by field."""

    def __init__(
        self, row: Mapping[str, Any], keys: Keys, given: GivenKeys, where: str, has: Sequence[str]
    ) -> None:
        self._row, self._keys, self._given, self._where, self._has = row, keys, given, where, has

    def text(self) -> tuple[Said, dict[Role, Said]]:
        if self._row.get(self._given.messages) is not None:
            return self._conversation()
        if self._keys.input not in self._row:
            raise self._missing(
                (self._given.messages, "prompts.rows.messages_key"),
                (self._keys.input, self._keys.naming("input_key")),
            )
        prompt = self._prompt()
        return prompt, {Role.RESPONSE: self._reply(self._given.response, "response_key", prompt)}

    def _conversation(self) -> tuple[Said, dict[Role, Said]]:
        where = f"{self._where}: {self._given.messages!r}"
        messages = said_in(self._row[self._given.messages], where=where)
        if isinstance(messages, str):
            raise DataError(f"{where} must be a list of chat messages, got {shown(messages)}")
        self._refuse_template(where)
        first = next((place for place, m in enumerate(messages) if m["role"] == "assistant"), None)
        if not first:
            problem = "begins with the assistant" if first == 0 else "has no message of the role 'assistant'"
            raise DataError(f"{where} {problem}: nothing in it answers a message")
        return messages[:first], {Role.RESPONSE: messages[first:]}

    def pair(self) -> tuple[Said, dict[Role, Said]]:
        names = {Role.CHOSEN: self._given.chosen, Role.REJECTED: self._given.rejected}
        if self._row.get(self._keys.input) is not None:
            prompt = self._prompt()
            replies = {role: self._reply(name, f"{role}_key", prompt) for role, name in names.items()}
        else:
            whole = {role: self._said(name, f"prompts.rows.{role}_key") for role, name in names.items()}
            prompt, replies = self._split(whole)
        if replies[Role.CHOSEN] == replies[Role.REJECTED]:
            both = " and ".join(map(repr, names.values()))
            raise DataError(f"{self._where}: {both} are the same: nothing tells which is better")
        return prompt, replies

    def marked(self) -> tuple[Said, dict[Role, Said]]:
        prompt, mark = self._prompt(), self._row.get(self._keys.label)
        if self._keys.label not in self._row:
            raise self._missing((self._keys.label, self._keys.naming("label_key")))
        if not isinstance(mark, bool):
            raise DataError(f"{self._where}: {self._keys.label!r} must be true or false, got {shown(mark)}")
        role = Role.DESIRABLE if mark else Role.UNDESIRABLE
        return prompt, {role: self._reply(self._given.response, "response_key", prompt)}

    def ranked(self) -> tuple[Said, dict[str, Said]]:
        name, prompt = self._given.ranked, self._prompt()
        if name not in self._row:
            raise self._missing((name, "prompts.rows.ranked_key"))
        listed, where = self._row[name], f"{self._where}: {name!r}"
        if not isinstance(listed, list) or len(listed) < 2:
            raise DataError(
                f"{where} must be a list of at least 2 responses, the best first, got {shown(listed)}"
            )
        said = [said_in(one, where=f"{where}[{place}]") for place, one in enumerate(listed)]
        return prompt, {f"{Role.RANKED}/{place}": one for place, one in enumerate(said)}

    def scored(self) -> tuple[Said, dict[Role, Said]]:
        prompt, mark = self._prompt(), self._row.get(self._keys.label)
        if self._keys.label not in self._row:
            raise self._missing((self._keys.label, self._keys.naming("label_key")))
        if isinstance(mark, bool) or not isinstance(mark, int | float) or not math.isfinite(mark):
            raise DataError(f"{self._where}: {self._keys.label!r} must be a number, got {shown(mark)}")
        return prompt, {Role.SCORED: self._reply(self._given.response, "response_key", prompt)}

    def marks(self) -> dict[str, float]:
        """What goes into the metadata of a row that is marked with a number."""
        return {TARGET: float(self._row[self._keys.label])} if self._given.shape == "scored" else {}

    def _prompt(self) -> Said:
        if self._keys.input not in self._row:
            raise self._missing((self._keys.input, self._keys.naming("input_key")))
        where = f"{self._where}: {self._keys.input!r}"
        return surrounded(self._row[self._keys.input], self._keys, where=where)

    def _said(self, name: str, key: str) -> Said:
        if name not in self._row:
            raise self._missing((name, key))
        return said_in(self._row[name], where=f"{self._where}: {name!r}")

    def _reply(self, name: str, key: str, prompt: Said) -> Said:
        """What is behind the prompt, which messages may repeat."""
        said = self._said(name, f"prompts.rows.{key}")
        if isinstance(said, str):
            return said
        before = _messages(prompt)
        return said[len(before) :] if said[: len(before)] == before and len(said) > len(before) else said

    def _split(self, whole: Mapping[Role, Said]) -> tuple[Said, dict[Role, Said]]:
        """What both begin with is the prompt."""
        self._refuse_template(f"{self._where}: {self._given.chosen!r}")
        chosen, rejected = whole[Role.CHOSEN], whole[Role.REJECTED]
        if isinstance(chosen, str) and isinstance(rejected, str):
            at = _common_words(chosen, rejected) if self._keys.is_plain else 0
        elif not isinstance(chosen, str) and not isinstance(rejected, str):
            at = _common_messages(chosen, rejected)
        else:
            at = 0
        if not at:
            raise DataError(
                f"{self._where}: there is no field {self._keys.input!r} ({self._keys.naming('input_key')}), "
                f"and {self._given.chosen!r} and {self._given.rejected!r} have no beginning in common"
            )
        return chosen[:at], {Role.CHOSEN: chosen[at:], Role.REJECTED: rejected[at:]}

    def _refuse_template(self, where: str) -> None:
        if self._keys.template is not None:
            raise DataError(f"{where} holds its prompt, which prompts.template cannot surround; remove it")

    def _missing(self, *fields: tuple[str, str]) -> DataError:
        named = " and none ".join(f"{name!r} ({key})" for name, key in fields)
        hint = nearest(fields[0][0], self._has)
        listed = ", ".join(map(repr, self._has)) or "none"
        return DataError(f"{self._where}: no field {named}{hint} (the row has {listed})")


def _messages(said: Said) -> tuple[Message, ...]:
    return ({"role": "user", "content": said},) if isinstance(said, str) else said


def _common_messages(one: Sequence[Message], other: Sequence[Message]) -> int:
    """Messages that both begin with, as long as both go on behind them."""
    at = next((i for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    return min(len(one), len(other)) - 1 if at is None else at


def _common_words(one: str, other: str) -> int:
    """Characters of the words that both begin with; the white space behind belongs to the responses."""
    parts = (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    common = next(parts, min(len(one), len(other)))
    ends = (at for at in range(1, common + 1) if one[at : at + 1].isspace() and other[at : at + 1].isspace())
    return max((at for at in ends if not one[at - 1].isspace()), default=0)
