"""One row of data → one `Prompt`: which fields are read, and what each must hold."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from strop.config.offline import Shape
from strop.config.tree import Prompts
from strop.errors import DataError, first_line
from strop.plugins import nearest
from strop.prompts.given_keys import GivenKeys
from strop.sample import Message, Prompt

REWARD = "rm_type"
"""Metadata of a row that names its own reward; slime's name."""
BUDGET = "max_response_tokens"
"""Metadata of a row that lowers the budget of its samples."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The names of the fields that are read; others are ignored."""

    input: str = "prompt"
    label: str = "label"
    metadata: str = "metadata"
    tools: str = "tools"
    fields: tuple[str, ...] = ()
    """Further fields that go into the metadata."""
    template: str | None = None
    """What surrounds the text of a prompt, which `{prompt}` stands for."""
    given: GivenKeys | None = None
    """Of what is trained, where rows hold it; None: rows are prompts that the model answers."""
    is_plain: bool = False
    """Whether only text without tools can be shown, as there is no chat template."""
    named_by: Mapping[str, str] = field(default_factory=dict)
    """`input_key`, `label_key`, … → the key of the run that set it, where it is not the one of `prompts`."""

    @classmethod
    def of(
        cls,
        section: Prompts,
        own: Mapping[str, str | None] | None = None,
        *,
        where: str = "prompts",
        shape: Shape | None = None,
    ) -> "Keys":
        """As the run names them; `own`: what a part of its data, at `where`, names otherwise. `shape`: of
        rows that hold what is trained."""
        theirs = {key: name for key, name in (own or {}).items() if name is not None}
        named = {
            "input_key": section.input_key,
            "label_key": section.label_key,
            "metadata_key": section.metadata_key,
            "tool_key": section.tool_key,
            **theirs,
        }
        return cls(
            input=named["input_key"],
            label=named["label_key"],
            metadata=named["metadata_key"],
            tools=named["tool_key"],
            fields=tuple(section.metadata_fields),
            template=section.template,
            given=None if shape is None else GivenKeys.of(section, shape),
            is_plain=not section.chat_template,
            named_by={key: f"{where}.{key}" for key in theirs},
        )

    def columns(self) -> tuple[str, ...]:
        """Every field that is read."""
        given = self.given.columns() if self.given else ()
        return tuple(dict.fromkeys((self.input, self.label, self.metadata, self.tools, *given, *self.fields)))

    def sparse(self) -> tuple[str, ...]:
        """Fields whose tables go to the chat template, to which an empty entry is not the same as none."""
        return (self.input, self.tools, *(self.given.columns() if self.given else ()))

    def asked_for(self) -> dict[str, str]:
        """Field → config key, of the optional fields that do not have their default name: whoever renames a
        field expects it to be there."""
        usual = Keys()
        optional = {
            "label_key": (self.label, usual.label),
            "metadata_key": (self.metadata, usual.metadata),
            "tool_key": (self.tools, usual.tools),
        }
        renamed = {name: self.naming(key) for key, (name, default) in optional.items() if name != default}
        return renamed | dict.fromkeys(self.fields, "prompts.metadata_fields")

    def naming(self, key: str) -> str:
        """The key of the run that set `input_key`, `label_key`, …"""
        return self.named_by.get(key, f"prompts.{key}")


def make_prompt(
    row: Mapping[str, Any], keys: Keys, *, id: str, where: str, has: Collection[str] | None = None
) -> Prompt:
    """The prompt that a row holds. Raises DataError, opened by `where` (such as `data.jsonl:17`).

    `has`: every field of the row, when `row` holds only some of them.
    """
    if keys.input not in row:
        names = row.keys() if has is None else has
        listed, hint = ", ".join(map(repr, names)) or "none", nearest(keys.input, names)
        raise DataError(
            f"{where}: no field {keys.input!r} ({keys.naming('input_key')}){hint} (the row has {listed})"
        )
    metadata = metadata_of(row, keys, where=where)
    prompt = Prompt(
        id=id,
        messages=surrounded(row[keys.input], keys, where=f"{where}: {keys.input!r}"),
        label=row.get(keys.label),
        metadata=metadata,
        tools=tools_of(row.get(keys.tools), where=f"{where}: {keys.tools!r}"),
    )
    if keys.is_plain and not (isinstance(prompt.messages, str) and not prompt.tools):
        holds = "tools" if prompt.tools else "chat messages"
        raise DataError(f"{where}: prompts.chat_template = false needs plain text, the row has {holds}")
    return with_own_choices(prompt, where=where)


def with_own_choices(prompt: Prompt, *, where: str) -> Prompt:
    """The prompt with what its metadata chooses for it: its reward. Raises DataError for a choice that is
    none, and for what no part of strop does yet."""
    refuse_reserved(prompt)
    metadata = {k: v for k, v in prompt.metadata.items() if v is not None or k not in (REWARD, BUDGET)}
    reward, budget = metadata.get(REWARD), metadata.get(BUDGET)
    if reward is not None and not (isinstance(reward, str) and reward):
        raise DataError(f"{where}: metadata.{REWARD} must be the name of a reward, got {shown(reward)}")
    if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool) or budget < 1):
        raise DataError(
            f"{where}: metadata.{BUDGET} must be a whole number of at least 1, got {shown(budget)}"
        )
    return replace(prompt, metadata=metadata, reward=prompt.reward or reward)


def refuse_reserved(prompt: Prompt) -> None:
    """Raise DataError if the prompt asks for what no part of strop does yet."""
    reserved = {"media": prompt.media, "environment": prompt.environment, "sampling": prompt.sampling}
    for name, value in reserved.items():
        if value:
            raise DataError(f"{prompt.id}: Prompt.{name} = {value!r} is not supported yet; leave it out")


def shown(value: object) -> str:
    """A wrong value, for the end of a message."""
    return f"{type(value).__name__} {first_line(repr(value), 60)}"


def metadata_of(row: Mapping[str, Any], keys: Keys, *, where: str) -> dict[str, Any]:
    given = row.get(keys.metadata)
    table = _from_json(given, where=f"{where}: {keys.metadata!r}") if isinstance(given, str) else given
    if table is not None and not isinstance(table, dict):
        raise DataError(
            f"{where}: {keys.metadata!r} must be an object, or the JSON text of one, got {shown(given)}"
        )
    metadata = dict(table or {})
    for name in keys.fields:
        if name in metadata and name in row:
            raise DataError(
                f"{where}: {name!r} is a field (prompts.metadata_fields) and in {keys.metadata!r}; rename one"
            )
        if name in row:
            metadata[name] = row[name]
    return metadata


def tools_of(given: object, *, where: str) -> tuple[dict[str, Any], ...]:
    tools = _from_json(given, where=where) if isinstance(given, str) and given else given
    if not tools and not isinstance(tools, dict):
        return ()
    if not (isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)):
        raise DataError(f"{where} must be a list of objects, or the JSON text of one, got {shown(given)}")
    return tuple(tools)


def _from_json(text: str, *, where: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as caught:
        reason = str(caught).removeprefix("JSON is malformed: ")
        raise DataError(f"{where} is text, but not JSON: {reason}, got {shown(text)}") from caught


def surrounded(value: object, keys: Keys, *, where: str) -> str | tuple[Message, ...]:
    given = said_in(value, where=where)
    if keys.template is None:
        return given
    if not isinstance(given, str):
        raise DataError(f"{where} holds chat messages, which prompts.template cannot surround; remove it")
    return keys.template.replace("{prompt}", given)


def said_in(value: object, *, where: str) -> str | tuple[Message, ...]:
    if isinstance(value, str):
        if not value.strip():
            raise DataError(f"{where} is empty")
        return value
    if not isinstance(value, list | tuple):
        raise DataError(f"{where} must be text or a list of chat messages, got {shown(value)}")
    if not value:
        raise DataError(f"{where} is an empty list of chat messages")
    for place, message in enumerate(value):
        _check_message(message, where=f"{where}[{place}]")
    return tuple(value)


def _check_message(message: object, *, where: str) -> None:
    if not isinstance(message, dict):
        raise DataError(f"{where} must be a message {{'role': …, 'content': …}}, got {shown(message)}")
    if not isinstance(message.get("role"), str):
        raise DataError(f"{where} needs a text 'role', got {shown(message.get('role'))}")
    content = message.get("content")
    is_call = content is None and bool(message.get("tool_calls"))
    if isinstance(content, str) or is_call:
        return
    if not isinstance(content, list):
        raise DataError(f"{where} needs a text 'content', got {shown(content)}")
    for part in content:
        if not (isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)):
            raise DataError(
                f"{where}: only text parts {{'type': 'text', 'text': …}} are read, got {shown(part)}"
            )
