"""One row of data → one `Prompt`: which fields are read, and what each must hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strop.config.tree import Prompts
from strop.errors import DataError, first_line
from strop.plugins import nearest
from strop.sample import Message, Prompt


@dataclass(frozen=True, slots=True)
class Keys:
    """The names of the fields that are read; others are ignored."""

    input: str = "prompt"
    label: str = "label"
    metadata: str = "metadata"
    tools: str = "tools"

    @classmethod
    def of(cls, section: Prompts) -> "Keys":
        """As the run names them."""
        return cls(section.input_key, section.label_key, section.metadata_key, section.tool_key)

    def asked_for(self) -> dict[str, str]:
        """Config key → field name, of the optional fields that do not have their default name: whoever
        renames a field expects it to be there."""
        named = {"label_key": self.label, "metadata_key": self.metadata, "tool_key": self.tools}
        defaults = (Keys().label, Keys().metadata, Keys().tools)
        return {
            key: name for (key, name), usual in zip(named.items(), defaults, strict=True) if name != usual
        }


def make_prompt(row: Mapping[str, Any], keys: Keys, *, id: str, where: str) -> Prompt:
    """The prompt that a row holds. Raises DataError, opened by `where` (such as `data.jsonl:17`)."""
    if keys.input not in row:
        has = ", ".join(map(repr, row)) or "none"
        hint = nearest(keys.input, row)
        raise DataError(f"{where}: no field {keys.input!r} (prompts.input_key){hint} (the row has {has})")
    metadata, tools = row.get(keys.metadata), row.get(keys.tools)
    if metadata is not None and not isinstance(metadata, dict):
        raise DataError(f"{where}: {keys.metadata!r} must be an object, got {shown(metadata)}")
    if tools is not None and not (isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)):
        raise DataError(f"{where}: {keys.tools!r} must be a list of objects, got {shown(tools)}")
    return Prompt(
        id=id,
        messages=_input(row[keys.input], where=f"{where}: {keys.input!r}"),
        label=row.get(keys.label),
        metadata=metadata or {},
        tools=tuple(tools or ()),
    )


def refuse_reserved(prompt: Prompt) -> None:
    """Raise DataError if the prompt asks for what no part of strop does yet."""
    reserved = {
        "media": prompt.media,
        "environment": prompt.environment,
        "reward": prompt.reward,
        "sampling": prompt.sampling,
    }
    for name, value in reserved.items():
        if value:
            raise DataError(f"{prompt.id}: Prompt.{name} = {value!r} is not supported yet; leave it out")


def shown(value: object) -> str:
    """A wrong value, for the end of a message."""
    return f"{type(value).__name__} {first_line(repr(value), 60)}"


def _input(value: object, *, where: str) -> str | tuple[Message, ...]:
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
