"""`ChatRenderer`: the model's own tokenizer and chat template.

What follows a reply is found by rendering the conversation with a placeholder for the reply, and cutting out
what the template puts behind it. The reply itself is never rendered, so its ids stay those that were drawn.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import msgspec

from strop.errors import ConfigError, DataError, first_line
from strop.render.messages import as_messages, flat, plain_reply, plain_text, refuse_turns
from strop.render.plain import PlainTokenizer, plain_tokenizer
from strop.render.said import Reply, Said, Turns, by_cuts, conversation, trained_turns
from strop.render.turns import Conversation, Marks, refuse_empty, spans_of_turns
from strop.render.variables import refuse_unused
from strop.sample import Message, Prompt

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class ChatRenderer:
    """Messages ↔ tokens of one model directory. `chat_template`: false shows the text alone, with the
    tokenizer's beginning-of-text token if it has one. `template_kwargs`: variables of the template. Raises
    ConfigError if the tokenizer cannot be loaded, has no template where one is asked for, or a template
    that does not use one of the variables.
    """

    stop_ids: tuple[int, ...]

    def __init__(
        self,
        directory: Path,
        *,
        chat_template: bool = True,
        template_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self._has_roles, self._template = chat_template, f"the chat template of {str(directory)!r}"
        self._tokenizer = _load(directory)
        if chat_template and not self._tokenizer.chat_template:
            raise ConfigError(
                f"prompts.chat_template = true, but {str(directory)!r} has no chat template "
                "(chat_template.jinja); set prompts.chat_template = false to show text as it is"
            )
        self._variables = dict(template_kwargs or {})
        if self._variables:
            refuse_unused(self._variables, self._tokenizer.chat_template or "", what=self._template)
        stops = [self._tokenizer.eos_token_id, *_eos_ids(directory)]
        if chat_template:
            stops.append(self._end_of_turn())
        self.stop_ids = tuple(dict.fromkeys(stop for stop in stops if stop is not None))
        self._opening = self._tokenizer("")["input_ids"][:1]

    def prompt(self, prompt: Prompt) -> list[int]:
        """Ids of the whole prompt. A template's own beginning-of-text token is the only one. Raises DataError
        if the template refuses the messages, or there are no tokens."""
        if self._has_roles:
            ids = self._encode(self._render(as_messages(prompt), tools=list(prompt.tools), where=prompt.id))
        else:
            ids = self._encode(plain_text(prompt))
            ids = [*self._missing_opening(ids), *ids]
        if not ids:
            raise DataError(f"{prompt.id}: the prompt renders to no tokens")
        return ids

    def follow_up(
        self, history: Sequence[Message], messages: Sequence[Message], *, last_id: int
    ) -> list[int]:
        """What the template puts behind a reply, less the stop id `last_id` if it was drawn, then `messages`
        and the opening of the next reply. Raises DataError if the template changes earlier turns when later
        ones come: no ids to append would then give what it renders."""
        if not self._has_roles:
            raise refuse_turns()
        before, following = flat(history), flat(messages)
        reply = _placeholder(before, following)
        opened = self._render(before, where="the conversation so far")
        whole = self._render(
            [*before, {"role": "assistant", "content": reply}, *following], where="the environment's messages"
        )
        gap, found, behind = whole.removeprefix(opened).partition(reply)
        # White space before a reply is the model's to draw: some templates leave it to the reply.
        if not whole.startswith(opened) or not found or gap.strip():
            raise DataError(
                f"{self._template} rewrites earlier turns when a later one is added, so several turns cannot "
                'be kept token by token; use env.type = "single_turn" or another template'
            )
        return self._behind(reply, behind, last_id=last_id)

    def said(self, prompt: Prompt, reply: Reply, *, turns: Turns) -> Said:
        """Where the template marks what the assistant says, by its marks; else from where the model would
        have begun to speak up to the first stop token, or to the end of what a template without one shows."""
        if not self._has_roles:
            text, answer = plain_text(prompt), plain_reply(prompt, reply)
            said = by_cuts(text + answer, [(len(text), len(text) + len(answer))], self._encode)
            opening, end = self._missing_opening(said.ids), self.stop_ids[:1]
            mask = [*(False for _ in opening), *said.mask, *(True for _ in end)]
            return Said([*opening, *said.ids, *end], mask)
        messages, tools = conversation(prompt, reply), list(prompt.tools)
        shown = self._render(messages, tools=tools, where=prompt.id, speaks_next=False)
        given = Conversation(prompt.id, messages, trained_turns(prompt, reply, turns), shown)
        marks = self._marks.spans(given, tools=tools or None, variables=self._variables)
        spans = self._spans(given, tools) if marks is None else marks
        refuse_empty(given, spans, template=self._template)
        return by_cuts(shown, spans, self._encode)

    @cached_property
    def _marks(self) -> Marks:
        return Marks(self._tokenizer.chat_template, self._tokenizer.special_tokens_map)

    def _spans(self, given: Conversation, tools: list[dict[str, Any]]) -> list[tuple[int, int]]:
        def render(n: int, speaks_next: bool) -> str:
            return self._render(given.messages[:n], tools=tools, where=given.id, speaks_next=speaks_next)

        stops = [str(self._tokenizer.decode([stop])) for stop in self.stop_ids]
        return spans_of_turns(given, render, stops=stops, template=self._template)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of a reply, without special tokens, and otherwise as drawn."""
        text: str = self._tokenizer.decode(
            list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return text

    @property
    def tokenizer(self) -> "PreTrainedTokenizerBase | PlainTokenizer":
        """The model's own, for those who look at it: `render/probe.py`."""
        return self._tokenizer

    @property
    def has_template(self) -> bool:
        """Whether prompts are shown with the chat template."""
        return self._has_roles

    def text(self, messages: list[Message], *, speaks_next: bool) -> str:
        """What the template makes of a conversation, `speaks_next`: up to where the model begins to speak.
        Raises DataError if it refuses the messages."""
        return self._render(messages, where="a conversation", speaks_next=speaks_next)

    def _behind(self, reply: str, text: str, *, last_id: int) -> list[int]:
        """Ids of `text`, tokenised as the continuation that it is of the reply or of its stop token."""
        anchor, stop = reply, self._tokenizer.decode([last_id])
        if last_id in self.stop_ids and text.lstrip().startswith(stop):
            anchor, text = stop, text.lstrip().removeprefix(stop)
        anchored, ids = self._encode(anchor), self._encode(anchor + text)
        if ids[: len(anchored)] != anchored:
            raise DataError(
                f"{self._template} puts {first_line(repr(text), 40)} behind a reply, where the tokenizer "
                'merges it with the reply; use env.type = "single_turn" or another template'
            )
        return ids[len(anchored) :]

    def _end_of_turn(self) -> int | None:
        """The special token that the template puts behind a reply, if it does."""
        turn: list[Message] = [{"role": "user", "content": "a"}]
        reply = _placeholder(turn, [])
        whole = self._render(
            [*turn, {"role": "assistant", "content": reply}], where="a first exchange", speaks_next=False
        )
        behind = self._encode(whole.rpartition(reply)[2].lstrip())[:1]
        specials = {i for i, token in self._tokenizer.added_tokens_decoder.items() if token.special}
        return behind[0] if behind and behind[0] in specials else None

    def _missing_opening(self, ids: list[int]) -> list[int]:
        """The beginning-of-text token, where texts begin with one and this does not yet."""
        # Not the tokenizer's own default: that doubles a beginning that the text has already, and may end the
        # prompt with an end-of-text token.
        is_missing = self._opening == [self._tokenizer.bos_token_id] and ids[:1] != self._opening
        return self._opening if is_missing else []

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _render(
        self,
        messages: list[Message],
        *,
        where: str,
        tools: list[dict[str, Any]] | None = None,
        speaks_next: bool = True,
    ) -> str:
        try:
            text: str = self._tokenizer.apply_chat_template(
                messages,
                tools=tools or None,
                tokenize=False,
                add_generation_prompt=speaks_next,
                **self._variables,
            )
        except (
            jinja2.TemplateError,
            TypeError,
        ) as caught:  # what templates raise on messages they do not expect
            raise DataError(f"{where}: {self._template} refuses it: {first_line(str(caught))}") from caught
        return text


def _load(directory: Path) -> "PreTrainedTokenizerBase | PlainTokenizer":
    plain = plain_tokenizer(directory)
    if plain is not None:
        return plain
    from transformers import AutoTokenizer  # takes seconds, and torch

    try:
        return AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as caught:
        raise ConfigError(
            f"model = {str(directory)!r}: its tokenizer cannot be loaded: {first_line(str(caught))}"
        ) from caught


def _eos_ids(directory: Path) -> list[int | None]:
    """The end-of-text ids of `generation_config.json`: one, several or null."""
    file = directory / "generation_config.json"
    given = msgspec.json.decode(file.read_bytes()).get("eos_token_id") if file.is_file() else None
    return given if isinstance(given, list) else [given]


def _placeholder(history: Sequence[Message], messages: Sequence[Message]) -> str:
    """A word that stands for the reply, and nowhere in the messages."""
    everything, word = str([*history, *messages]), "reply"
    while word in everything:
        word += "y"
    return word
