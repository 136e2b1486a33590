"""What the probe finds in templates that behave like those of well-known families."""

import shutil

import pytest
from templates import (
    CHATML,
    GEMMA,
    LLAMA3,
    MARKED,
    MISTRAL,
    OPENS_THOUGHT,
    PLAIN,
    THINKING,
    make_tokenizer,
)

from strop.config.load import load_config
from strop.finding import Level
from strop.preflight import prepare
from strop.render.bytes import ByteRenderer
from strop.render.open import open_renderer
from strop.render.probe import Concern, notes, probe


@pytest.fixture
def traits(tmp_path):
    """What is found in a template with such a tokenizer."""

    def found(template, *, chat_template=True, **tokenizer):
        return probe(
            open_renderer(make_tokenizer(tmp_path, template, **tokenizer), chat_template=chat_template)
        )

    return found


def texts(traits, about):
    return [t.finding.text for t in traits if t.finding.about == about]


def levels(traits):
    return {t.finding.about for t in traits if t.finding.level is not Level.OK}


def test_a_usual_template_has_nothing_to_warn_of(traits):
    found = traits(CHATML, pad="<|im_end|>")
    assert levels(found) == set()
    assert notes(found, has_turns=True) == ()


def test_a_system_prompt_that_nobody_gave_is_told(traits):
    (text,) = texts(traits(CHATML), "system prompt")
    assert "You help." in text
    assert texts(traits(GEMMA, bos="<s>", eos="<end_of_turn>"), "system prompt") == []


def test_the_separator_behind_the_stop_token_is_told_and_kept_between_turns(traits):  # E1
    found = traits(CHATML)
    assert "'\\n' behind the stop token" in texts(found, "separator")[0]
    assert texts(found, "several turns") == ["appended ids are those of the whole conversation"]
    assert texts(traits(LLAMA3, bos="<s>", eos="<|eot_id|>"), "separator") == []


def test_appended_ids_are_those_of_the_whole_conversation(traits):  # E2, E8
    for template, tokenizer in (
        (CHATML, {}),
        (LLAMA3, {"bos": "<s>", "eos": "<|eot_id|>"}),
        (GEMMA, {"bos": "<s>", "eos": "<end_of_turn>"}),
        (MISTRAL, {"bos": "<s>", "eos": "</s>"}),
        (THINKING, {}),
    ):
        said = texts(traits(template, **tokenizer), "several turns")
        assert said[0] == "appended ids are those of the whole conversation", template


def test_dropped_thoughts_concern_runs_of_several_turns_alone(traits):  # E3
    found = traits(THINKING)
    (text,) = texts(found, "thoughts")
    assert text.startswith("the template drops <think> of earlier replies once a user message follows")
    assert "both tool and user will fail" in text
    assert [n for n in notes(found, has_turns=True) if n.startswith("thoughts: ")]
    assert notes(found, has_turns=False) == ()


def test_an_empty_thought_around_a_last_reply_is_told(traits):  # E4
    assert any("never rendered again" in text for text in texts(traits(THINKING), "several turns"))


def test_an_opening_that_earlier_replies_lack_concerns_runs_of_several_turns(traits):
    (text,) = [t for t in traits(OPENS_THOUGHT) if t.finding.about == "several turns"]
    assert text.concern is Concern.TURNS
    assert "rewrites earlier turns" in text.finding.text


@pytest.mark.parametrize(("template", "marks"), [(MARKED, True), (CHATML, False)])
def test_generation_marks_are_told_and_not_needed(traits, template, marks):
    (text,) = texts(traits(template), "mask")
    assert ("marks what the assistant says" in text) == marks


@pytest.mark.parametrize(
    ("template", "bos", "adds_bos", "expected"),
    [
        (LLAMA3, "<s>", True, (Level.OK, "the tokenizer's own is left out")),
        (LLAMA3, "<s>", False, (Level.OK, "the template writes <s>: it stands there once")),
        ("{{ bos_token }}" + LLAMA3, "<s>", True, (Level.WARN, "writes <s> twice")),
        (CHATML, "<s>", True, (Level.WARN, "prompts begin without it")),
    ],
)
def test_the_beginning_of_a_text_stands_there_once(traits, template, bos, adds_bos, expected):  # D18
    (found,) = [t.finding for t in traits(template, bos=bos, adds_bos=adds_bos) if "begin" in t.finding.about]
    assert (found.level, expected[1] in found.text) == (expected[0], True)


@pytest.mark.parametrize(
    ("pad", "said"), [(None, "there is no pad token"), ("<|im_end|>", "is the stop id 3"), ("<s>", None)]
)
def test_a_pad_token_that_ends_a_text_or_is_missing_does_no_harm(traits, pad, said):  # D20
    found = texts(traits(CHATML, pad=pad), "pad")
    assert [said in text for text in found] == ([True] if said else [])
    assert notes(traits(CHATML, pad=pad), has_turns=True) == ()


def test_stop_ids_are_told_with_their_place_in_the_template(traits):
    found = traits(LLAMA3, bos="<s>", eos="</s>")
    assert texts(found, "stop 1") == ["</s>, special, does not close a reply in the template"]
    assert texts(found, "stop 6") == ["<|eot_id|>, special, closes a reply in the template"]


def test_turns_that_no_token_closes_are_warned_of_in_every_run(traits):
    (note,) = notes(traits(PLAIN), has_turns=False)
    assert note.startswith("stop: the template closes a reply with '\\n\\n', which is no stop id")


def test_a_date_in_the_prompts_is_warned_of(traits):
    (note,) = notes(traits(LLAMA3, bos="<s>", eos="<|eot_id|>"), has_turns=False)
    assert "today's date" in note


def test_roles_that_a_template_refuses_are_told(traits):
    refused = texts(traits(GEMMA, bos="<s>", eos="<end_of_turn>"), "roles")
    assert refused == ["the template refuses the role system", "the template refuses the role tool"]


def test_a_template_that_refuses_a_question_fails(traits):
    refuses = "{% if messages|length == 1 %}{{ raise_exception('too short') }}{% endif %}"
    (trait,) = traits(refuses + CHATML)
    assert trait.finding.level is Level.FAIL


def test_without_a_template_only_the_stops_are_looked_at(traits):
    assert {t.finding.about for t in traits(CHATML, chat_template=False)} == {"template", "stop 3"}


def test_the_byte_renderer_has_nothing_to_find():
    assert notes(probe(ByteRenderer()), has_turns=True) == ()


def test_a_run_begins_with_what_the_template_does_to_it(tmp_path, tiny_dir, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.jsonl").write_text('{"prompt": "ab", "label": "b"}\n')
    model = shutil.copytree(tiny_dir, tmp_path / "model")
    (model / "tokenizer_config.json").unlink()
    make_tokenizer(model, THINKING)
    base = ["--model", "model", "--loop.steps", "1", "--prompts.files", "data.jsonl"]
    assert prepare(load_config([], base).config).template_notes == ()
    turns = ["--env.type", "calculator", "--env.options.role", "user"]
    (note,) = prepare(load_config([], [*base, *turns]).config).template_notes
    assert note.startswith("thoughts: ")
