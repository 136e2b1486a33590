"""What a chat template and its tokenizer do that a run should know of: tried out, not read.

The template is shown short conversations and what it makes of them is compared. Nothing here changes how a
run renders: ids that were drawn stay, and masks go by where tokens came from.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from strop.errors import DataError, first_line
from strop.finding import Finding, Level
from strop.render.base import Renderer
from strop.render.chat import ChatRenderer
from strop.sample import Message, Prompt

_ASK, _MORE = "a question of the user", "a further question"
_REPLY = "the reply itself"
_THOUGHT = "a thought before it"
_THINKING = f"<think>\n{_THOUGHT}\n</think>\n\n{_REPLY}"
_CLOCK = ("strftime_now", "date_string")
"""By which templates write today's date."""
_MARK = "generation"
"""The template's own mark of what the assistant said: `{% generation %}`."""


class Concern(StrEnum):
    """Which runs a finding matters to."""

    EVERY = "every run"
    TURNS = "runs of several turns"
    NONE = "none"
    """Told by `strop doctor` alone: the way strop renders makes it harmless."""


@dataclass(frozen=True, slots=True)
class Trait:
    """Something that a template does, and whom it concerns."""

    finding: Finding
    concern: Concern = Concern.NONE


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the template makes of a first exchange, and of one that goes on; None: it refuses."""

    opened: str | None
    """The question, up to where the model begins to speak."""
    closed: str | None
    """The question and its reply."""
    grown: str | None
    """The same, a further question, and the opening of the next reply."""

    @property
    def behind(self) -> str:
        """What is put behind a reply."""
        return (self.closed or "").rpartition(_REPLY)[2]


def probe(renderer: Renderer) -> tuple[Trait, ...]:
    """All that is found, in the order of a conversation."""
    if not isinstance(renderer, ChatRenderer):
        return (_ok("template", f"{type(renderer).__name__}: turns are kept id by id"),)
    if not renderer.has_template:
        return (_ok("template", "none is used: prompts are text as it is"), *_stops(renderer, None))
    ask, reply = _says("user", _ASK), _says("assistant", _REPLY)
    shown = _Shown(
        opened=_text(renderer, ask, speaks_next=True),
        closed=_text(renderer, ask, reply),
        grown=_text(renderer, ask, reply, _says("user", _MORE), speaks_next=True),
    )
    if shown.opened is None:
        why = "refuses a single message of the user; set prompts.chat_template = false, or mend it"
        return (Trait(Finding(Level.FAIL, "template", why), Concern.EVERY),)
    return (
        *_beginning(renderer, shown.opened),
        *_injected(renderer, shown),
        *_stops(renderer, shown),
        *_turns(renderer, shown),
        *_thoughts(renderer),
        *_harmless(renderer),
    )


def notes(traits: tuple[Trait, ...], *, has_turns: bool) -> tuple[str, ...]:
    """What to say when a run begins: only what matters to it."""
    concerns = {Concern.EVERY, Concern.TURNS} if has_turns else {Concern.EVERY}
    told = [t.finding for t in traits if t.concern in concerns and t.finding.level is not Level.OK]
    return tuple(f"{finding.about}: {finding.text}" for finding in told)


def _ok(about: str, text: str) -> Trait:
    return Trait(Finding(Level.OK, about, text))


def _warn(about: str, text: str, concern: Concern = Concern.EVERY) -> Trait:
    return Trait(Finding(Level.WARN, about, text), concern)


def _says(role: str, text: str) -> Message:
    return {"role": role, "content": text}


def _text(renderer: ChatRenderer, *messages: Message, speaks_next: bool = False) -> str | None:
    try:
        return renderer.text(list(messages), speaks_next=speaks_next)
    except DataError:
        return None


def _encode(renderer: ChatRenderer, text: str) -> list[int]:
    ids: list[int] = renderer.tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def _beginning(renderer: ChatRenderer, opened: str) -> Iterator[Trait]:
    """The token that begins a text: once, twice or never."""
    tokenizer = renderer.tokenizer
    bos, bos_id = tokenizer.bos_token, tokenizer.bos_token_id
    if bos is None:
        return
    ids, adds = _encode(renderer, opened), tokenizer("")["input_ids"][:1] == [bos_id]
    if ids[:2] == [bos_id, bos_id]:
        yield _warn("begin of text", f"the template writes {bos} twice before every prompt; take one out")
    elif ids[:1] == [bos_id]:
        also = ", and the tokenizer's own is left out" if adds else ""
        yield _ok("begin of text", f"the template writes {bos}{also}: it stands there once")
    elif adds:
        text = f"the tokenizer begins texts with {bos}, the template does not: prompts begin without it"
        yield _warn("begin of text", text)


def _injected(renderer: ChatRenderer, shown: _Shown) -> Iterator[Trait]:
    """What nobody asked for: a system prompt, today's date."""
    source = str(renderer.tokenizer.chat_template)
    if any(name in source for name in _CLOCK):
        text = (
            "the template may write today's date into prompts: a run resumed on another day then sees other "
            'prompts; give one in prompts.chat_template_kwargs, e.g. { date_string = "26 Jul 2024" }'
        )
        yield _warn("template", text)
    if shown.grown is not None:
        extra = _extra(shown.grown).strip()
        if extra not in ("", renderer.tokenizer.bos_token):
            yield _ok("system prompt", f"written where a prompt has none: {first_line(repr(extra), 90)}")
    for role in ("system", "tool"):
        messages = [_says(role, "a word"), _says("user", _ASK)]
        if role == "tool":
            messages = [_says("user", _ASK), _says("assistant", _REPLY), messages[0]]
        if _text(renderer, *messages, speaks_next=True) is None:
            yield _ok("roles", f"the template refuses the role {role}")


def _extra(grown: str) -> str:
    """What stands before the first question and not before the second."""
    first = grown.partition(_ASK)[0]
    between = grown.partition(_REPLY)[2].partition(_MORE)[0]
    size = len(first)
    while not between.endswith(first[len(first) - size :]):
        size -= 1
    return first[: len(first) - size]


def _stops(renderer: ChatRenderer, shown: _Shown | None) -> Iterator[Trait]:
    """Which ids end a reply, and whether the model can have learned to draw them."""
    tokenizer = renderer.tokenizer
    if not renderer.stop_ids:
        text = "no id ends a reply: each runs to rollout.max_response_tokens; name one in "
        yield _warn("stop", f"{text}rollout.stop_token_ids")
    behind = shown.behind.lstrip() if shown is not None else ""
    closes = [i for i in renderer.stop_ids if behind.startswith(str(tokenizer.convert_ids_to_tokens(i)))]
    for stop in renderer.stop_ids:
        kind = "special" if stop in tokenizer.added_tokens_decoder else "ordinary"
        place = (
            "closes a reply in the template" if stop in closes else "does not close a reply in the template"
        )
        said = "" if shown is None else f", {place}"
        yield _ok(f"stop {stop}", f"{tokenizer.convert_ids_to_tokens(stop)}, {kind}{said}")
    if shown is None or shown.closed is None:
        return
    if not shown.behind:
        text = "the template puts no token behind a reply: whether the model ends one is for it to know"
        yield _warn("stop", text)
    elif not closes:
        text = f"the template closes a reply with {first_line(repr(shown.behind), 40)}, which is no stop id: "
        yield _warn("stop", f"{text}replies may run to rollout.max_response_tokens; name it in rollout.stop")
    else:
        rest = behind.removeprefix(str(tokenizer.convert_ids_to_tokens(closes[0])))
        if rest:
            text = f"the template puts {first_line(repr(rest), 30)} behind the stop token; the model never "
            yield _ok("separator", f"{text}draws it: it is added between turns, untrained")


def _turns(renderer: ChatRenderer, shown: _Shown) -> Iterator[Trait]:
    """Whether ids that are only ever appended give what the template would render."""
    last = next(iter(renderer.stop_ids), 0)
    ask, more = [_says("user", _ASK)], [_says("user", _MORE)]
    try:
        behind = renderer.follow_up(ask, more, last_id=last)
    except DataError as refused:
        yield _warn("several turns", first_line(str(refused)), Concern.TURNS)
        return
    assert shown.opened is not None
    assert shown.grown is not None
    gap = shown.grown.removeprefix(shown.opened).partition(_REPLY)[0]
    drawn = [*_encode(renderer, gap + _REPLY), last]
    appended = [*renderer.prompt(Prompt(id="probe", messages=_ASK)), *drawn, *behind]
    if appended == _encode(renderer, shown.grown):
        yield _ok("several turns", "appended ids are those of the whole conversation")
    else:
        text = "appended ids differ from those of the whole conversation, though the text is the same: the "
        yield _warn(
            "several turns", f"{text}tokenizer joins what turns divide; ids are kept as drawn", Concern.TURNS
        )
    if shown.closed is not None and not shown.closed.startswith(shown.opened + gap + _REPLY):
        text = (
            "the template shows a last reply otherwise than an earlier one: replies are never rendered again"
        )
        yield _ok("several turns", text)


def _thoughts(renderer: ChatRenderer) -> Iterator[Trait]:
    """Whether `<think>` of an earlier reply is still shown when the conversation goes on."""
    exchange = [_says("user", _ASK), _says("assistant", _THINKING)]
    first = _text(renderer, *exchange)
    if first is None or _THOUGHT not in first:
        return
    kept = {
        role: _THOUGHT in (_text(renderer, *exchange, _says(role, _MORE), speaks_next=True) or _THOUGHT)
        for role in ("user", "tool")
    }
    dropped = [role for role, is_kept in kept.items() if not is_kept]
    if not dropped:
        return
    mixed = "" if len(dropped) == 2 else "; an environment that answers with both tool and user will fail"
    text = (
        f"the template drops <think> of earlier replies once a {' or '.join(dropped)} message follows; drawn "
        f"ids are kept, so the model sees thoughts that a server with this template would not show{mixed}"
    )
    yield _warn("thoughts", text, Concern.TURNS)


def _harmless(renderer: ChatRenderer) -> Iterator[Trait]:
    """What other programs must know of a template, and a run here need not."""
    tokenizer = renderer.tokenizer
    if _MARK in str(tokenizer.chat_template).replace("add_generation_prompt", ""):
        yield _ok(
            "mask", "the template marks what the assistant says; masks go by what was drawn all the same"
        )
    else:
        yield _ok(
            "mask", "the template has no {% generation %} marks: not needed, masks go by what was drawn"
        )
    pad = tokenizer.pad_token_id
    if pad is None:
        yield _ok("pad", "there is no pad token: nothing is padded")
    elif pad in renderer.stop_ids:
        yield _ok("pad", f"the pad token is the stop id {pad}: nothing is padded, so no stop goes untrained")
