"""What is trained of a conversation that is given: what the assistant says, with the end of its turn."""

from dataclasses import replace

import pytest
from cases import case
from chat_model import CHATML, FORGETFUL, LLAMA, MISTRAL, OPENING, make_chat_tokenizer

from strop.config.offline import Rows
from strop.errors import DataError
from strop.offline.rows import RowReader
from strop.render.bytes import ByteRenderer
from strop.render.chat import ChatRenderer
from strop.sample import Prompt

MARKED = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.role == 'assistant' -%}\n  {% generation %}\n{{ message.content + '<|im_end|>' }}"
    "{%- endgeneration %}\n{{ '\\n' }}{% else %}{{ message.content + '<|im_end|>\\n' }}{% endif %}"
    "{% endfor %}"
    f"{OPENING}"
)
"""Marks what the assistant says, with white space around the marks that it takes away in part."""
THOUGHTFUL = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}"
    "{{ (message.content if loop.last else message.content.split('</think>')[-1]) }}"
    "{{ '<|im_end|>\\n' }}{% endfor %}"
    f"{OPENING}"
)
"""Shows thoughts of the last reply alone, as Qwen3's does."""
PROMPT = Prompt(id="data.jsonl:3", messages="a")
TURNS = (
    {"role": "assistant", "content": "b c"},
    {"role": "user", "content": "d"},
    {"role": "assistant", "content": "e"},
)
TEMPLATES = {"chatml": CHATML, "llama": LLAMA, "mistral": MISTRAL, "marked": MARKED}
TEMPLATES |= {"forgetful": FORGETFUL, "thoughtful": THOUGHTFUL}


@pytest.fixture(scope="module")
def renderers(tmp_path_factory):
    root = tmp_path_factory.mktemp("said")
    made = {n: make_chat_tokenizer(root / n, t, adds_bos=n == "llama") for n, t in TEMPLATES.items()}
    return {"bytes": ByteRenderer(), **{name: ChatRenderer(path) for name, path in made.items()}}


@pytest.fixture(params=["bytes", "chatml", "llama", "mistral", "marked"])
def renderer(request, renderers):
    return renderers[request.param]


def parts(said):
    """Runs of neighbours that are trained, as ids."""
    runs, last = [], False
    for id, mask in zip(said.ids, said.mask, strict=True):
        if mask and not last:
            runs.append([])
        if mask:
            runs[-1].append(id)
        last = mask
    return runs


def test_a_reply_stands_behind_the_prompt_that_a_model_would_be_shown(renderer):
    said = renderer.said(PROMPT, "b c", turns="all")
    assert said.ids[: said.prompt_length] == renderer.prompt(PROMPT)
    (reply,) = parts(said)
    assert renderer.decode(reply).strip() == "b c"
    assert reply[-1] in renderer.stop_ids


def test_what_no_model_draws_is_not_behind_a_response(renderer):
    """A reward model would learn to score the line break that a template puts behind the end of a turn, and
    be asked for the score of the end of turn that a policy drew."""
    for reply in ["b c", (*TURNS, TURNS[1])]:
        with case(reply):
            said = RowReader(renderer, Rows(), 64).responses(replace(PROMPT, label={"scored": reply}))[0]
            assert said.sequence.ids[-1] in renderer.stop_ids
            assert said.sequence.mask[-1]
            assert said.text == said.text.rstrip()


def test_every_reply_is_trained_up_to_the_end_of_its_turn_and_nothing_between(renderer):
    said = renderer.said(PROMPT, TURNS, turns="all")
    assert [renderer.decode(part).strip() for part in parts(said)] == ["b c", "e"]
    assert all(part[-1] in renderer.stop_ids for part in parts(said))


def test_the_last_reply_alone_can_be_trained(renderer):
    whole, last = (renderer.said(PROMPT, TURNS, turns=turns) for turns in ("all", "last"))
    assert last.ids == whole.ids
    assert parts(last) == parts(whole)[-1:]


def test_ids_are_those_of_the_whole_conversation(renderers):
    """slime#2263: turns that were rendered one by one were other tokens than at inference."""
    renderer = renderers["chatml"]
    messages = [{"role": "user", "content": "a"}, *TURNS]
    text = renderer.text(messages, speaks_next=False)
    ids = renderer.tokenizer(text, add_special_tokens=False)["input_ids"]
    assert renderer.said(PROMPT, TURNS, turns="all").ids == ids


def test_a_conversation_begins_with_one_beginning_of_text(renderers):
    said = renderers["llama"].said(PROMPT, TURNS, turns="all")
    assert said.ids.count(3) == 1
    assert said.ids[0] == 3


def test_marks_of_the_template_say_what_is_trained(renderers):
    """The separator behind the marks is not; text and ids are those without marks."""
    marked, plain = (renderers[name].said(PROMPT, TURNS, turns="all") for name in ("marked", "chatml"))
    assert marked == plain


def test_a_reply_of_which_a_template_marks_nothing_is_named(tmp_path):
    template = (
        "{% for message in messages %}{% if message.role == 'assistant' %}"
        "{% generation %}{{ message.content }}{% endgeneration %}"
        "{% else %}{{ message.content }}{% endif %}{{ ';' }}{% endfor %}"
    )
    renderer = ChatRenderer(make_chat_tokenizer(tmp_path, template))
    with pytest.raises(DataError, match=r"data\.jsonl:3: the chat template of .* shows nothing of message 2"):
        renderer.said(PROMPT, [{"role": "assistant", "content": ""}], turns="all")


def test_an_untrained_prompt_may_have_replies_of_its_own(renderer):
    prompt = Prompt(id="p", messages=({"role": "user", "content": "a"}, *TURNS[:2]))
    said = renderer.said(prompt, "e", turns="all")
    assert said.ids[: said.prompt_length] == renderer.prompt(prompt)
    assert [renderer.decode(part).strip() for part in parts(said)] == ["e"]


def test_a_template_that_hides_earlier_thoughts_is_named_and_the_last_reply_still_trained(renderers):
    thought = {"role": "assistant", "content": "<think>b</think>c"}
    turns = (thought, TURNS[1], thought)
    with pytest.raises(DataError, match=r"data\.jsonl:3: the chat template of .* shows message 2 otherwise"):
        renderers["thoughtful"].said(PROMPT, turns, turns="all")
    said = renderers["thoughtful"].said(PROMPT, turns, turns="last")
    assert [renderers["thoughtful"].decode(part) for part in parts(said)] == ["<think>b</think>c"]


def test_a_template_that_rewrites_what_was_asked_is_named(renderers):
    with pytest.raises(DataError, match=r'what is before message 4 otherwise .* prompts.rows.turns = "last"'):
        renderers["forgetful"].said(PROMPT, (*TURNS, *TURNS[1:]), turns="all")


def test_without_a_template_the_text_goes_on_and_ends(tmp_path):
    renderer = ChatRenderer(make_chat_tokenizer(tmp_path, None, adds_bos=True), chat_template=False)
    said = renderer.said(Prompt(id="p", messages="52, 17"), " or 38?", turns="all")
    assert said.ids[: said.prompt_length] == renderer.prompt(Prompt(id="p", messages="52, 17"))
    assert parts(said)[0][-1] == renderer.stop_ids[0]
    assert renderer.decode(said.ids) == "52, 17 or 38?"
    assert ByteRenderer(chat_template=False).said(PROMPT, "b", turns="all").ids == [97, 98, 256]


def test_a_token_that_reaches_over_the_end_of_a_prompt_is_divided(tmp_path):
    """A model that answers `Which is the lar` has read whole tokens, not the half of `largest`."""
    renderer = ChatRenderer(make_chat_tokenizer(tmp_path, None), chat_template=False)
    prompt = Prompt(id="p", messages="Which is the lar")
    said = renderer.said(prompt, "gest", turns="all")
    assert said.ids[: said.prompt_length] == renderer.prompt(prompt)


def test_a_reply_that_is_none_is_named(renderer):
    cases = [
        (
            [{"role": "user", "content": "x"}],
            "a response begins with a message of the role 'assistant', got 'user'",
        ),
        ([], "got nothing"),
    ]
    for reply, message in cases:
        with case(reply), pytest.raises(DataError, match=f"data.jsonl:3: .*{message}"):
            renderer.said(PROMPT, reply, turns="all")
