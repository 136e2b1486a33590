"""Where the turns of the assistant stand in the text that a chat template makes of a conversation.

A template may mark them itself (`{% generation %}`). Else each is looked for by what stands before it: what a
model that is to speak next would have been shown. A template that shows earlier turns otherwise once the
conversation goes on is found out that way, and refused by name.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jinja2

from strop.errors import DataError, first_line
from strop.render.plain import compiled
from strop.sample import Message

Span = tuple[int, int]
"""Characters from, to."""

_BEGIN, _END = "\ue000", "\ue001"
"""Of Unicode's private use: no text means anything by them."""
_OPENING = re.compile(r"(\{%[-+]?\s*generation\s*(-?)%\})\n?")
_CLOSING = re.compile(r"((?:^[ \t]+)?)(\{%(-?)\s*endgeneration\s*[-+]?%\})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages, and what the template makes of them."""

    id: str
    messages: list[Message]
    trained: list[int]
    """Places of the messages whose text is looked for, rising."""
    text: str


class Marks:
    """The template's own marks of what the assistant says. `named`: the special tokens that it may write."""

    def __init__(self, template: object, named: Mapping[str, Any]) -> None:
        self._source, self._named = template, named

    @cached_property
    def _template(self) -> jinja2.Template | None:
        """The same template, which writes a sign where a mark stands; None: it has none."""
        if not isinstance(self._source, str) or not _OPENING.search(self._source):
            return None
        # Signs are written by expressions, which keep the white space that the tags beside them took away.
        signed = _OPENING.sub(rf"\1{{{{ '{_BEGIN}' \2}}}}", self._source)
        return compiled(_CLOSING.sub(rf"{{{{\3 '{_END}' }}}}\2", signed))

    def spans(
        self, given: Conversation, *, tools: list[dict[str, Any]] | None, variables: Mapping[str, Any]
    ) -> list[Span] | None:
        """Of the trained messages; None where the template has no marks, or not one for each message of the
        assistant."""
        if self._template is None:
            return None
        known = {
            **self._named,
            **variables,
            "tools": tools,
            "documents": None,
            "add_generation_prompt": False,
        }
        spans, plain = _signed(self._template.render(messages=given.messages, **known))
        places = [place for place, message in enumerate(given.messages) if message["role"] == "assistant"]
        if plain != given.text or len(spans) != len(places):
            return None
        return [span for span, place in zip(spans, places, strict=True) if place in given.trained]


def _signed(text: str) -> tuple[list[Span], str]:
    """Spans between signs, in the text without them; and that text."""
    parts = re.split(f"[{_BEGIN}{_END}]", text)
    ends = [sum(map(len, parts[: place + 1])) for place in range(len(parts) - 1)]
    return list(zip(ends[::2], ends[1::2], strict=False)), "".join(parts)


def spans_of_turns(
    given: Conversation, render: Callable[[int, bool], str], *, stops: Sequence[str], template: str
) -> list[Span]:
    """Of the trained messages, each up to the first of the texts `stops`.

    `render`: the text of the first n messages, up to where the model begins to speak or not. `template` names
    it in messages. Raises DataError where what is before a message, or the message, is shown otherwise in the
    whole conversation than to a model that is to say it.
    """
    begins = [_begin(given, place, render(place, True), template=template) for place in given.trained]
    spans = []
    for place, begin, until in zip(given.trained, begins, [*begins[1:], len(given.text)], strict=True):
        end = _end(given.text, begin, until, stops)
        if end is None:
            closed = render(place + 1, False).rstrip()
            end = len(closed) if given.text.startswith(closed) else begin
        _check_shown(given, place, given.text[begin:end], template=template)
        spans.append((begin, end))
    return spans


def _begin(given: Conversation, place: int, opened: str, *, template: str) -> int:
    if given.text.startswith(opened):
        return len(opened)
    way_out = "leave the row out"
    if place != given.trained[-1]:
        way_out = 'set prompts.rows.turns = "last" to train last replies alone'
    raise DataError(
        f"{given.id}: {template} shows what is before message {place + 1} otherwise once the conversation "
        f"goes on, so the model would read other tokens than are trained; {way_out}"
    )


def _end(text: str, begin: int, until: int, stops: Sequence[str]) -> int | None:
    found = [(text.find(stop, begin, until), stop) for stop in stops if stop]
    ends = [at + len(stop) for at, stop in found if at >= 0]
    return min(ends, default=None)


def _check_shown(given: Conversation, place: int, shown: str, *, template: str) -> None:
    content = given.messages[place].get("content")
    if isinstance(content, str) and content.strip() not in shown:
        raise DataError(
            f"{given.id}: {template} shows message {place + 1} otherwise than it stands in the row: "
            f'{first_line(repr(shown), 60)}; set prompts.rows.turns = "last", or change the row'
        )


def refuse_empty(given: Conversation, spans: Sequence[Span], *, template: str) -> None:
    """Raises DataError where a span of the trained messages holds nothing."""
    for place, (begin, end) in zip(given.trained, spans, strict=True):
        if begin == end:
            raise DataError(f"{given.id}: {template} shows nothing of message {place + 1}; leave the row out")
