"""The chat renderer on real tokenizers: exact ids over several turns, beginnings and ends of text."""

import json
import shutil

import pytest
from chat_model import CHATML, FORGETFUL, LLAMA, MISTRAL, make_chat_tokenizer

from strop.errors import ConfigError, DataError
from strop.render.open import open_renderer
from strop.sample import Prompt

IM_END = 2
HISTORY = [{"role": "user", "content": "Which is largest?"}]
ANSWER = [{"role": "user", "content": "= 42"}]


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """A renderer for a template; the tokenizer files are made once each."""
    made = {}

    def renderer(template=CHATML, *, adds_bos=False, chat_template=True):
        key = (template, adds_bos)
        if key not in made:
            made[key] = make_chat_tokenizer(tmp_path_factory.mktemp("chat"), template, adds_bos=adds_bos)
        return open_renderer(made[key], chat_template=chat_template)

    return renderer


def encoded(renderer, text):
    return renderer._tokenizer(text, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("template", [CHATML, LLAMA, MISTRAL])
def test_prompt_reply_and_follow_up_are_the_full_render(make, template):
    renderer = make(template)
    reply = {"role": "assistant", "content": "52 or 17"}
    opening = " " if template == MISTRAL else ""
    drawn = [*encoded(renderer, opening + reply["content"]), IM_END]
    grown = [
        *renderer.prompt(Prompt(id="p", messages=tuple(HISTORY))),
        *drawn,
        *renderer.follow_up(HISTORY, ANSWER, last_id=IM_END),
    ]
    assert grown == renderer.prompt(Prompt(id="p", messages=(*HISTORY, reply, *ANSWER)))


def test_separator_after_the_stop_token_is_not_lost(make):
    renderer = make(CHATML)
    assert renderer.follow_up(HISTORY, ANSWER, last_id=IM_END)[0] == encoded(renderer, "\n")[0]


def test_a_reply_cut_off_is_closed_by_the_template(make):
    renderer = make(CHATML)
    stopped = renderer.follow_up(HISTORY, ANSWER, last_id=IM_END)
    assert renderer.follow_up(HISTORY, ANSWER, last_id=100) == [IM_END, *stopped]


def test_words_of_the_placeholder_in_a_tool_answer_do_no_harm(make):
    renderer = make(CHATML)
    answer = [{"role": "tool", "content": "reply replyy <reply>"}]
    ids = renderer.follow_up(HISTORY, answer, last_id=IM_END)
    assert ids == encoded(
        renderer, "\n<|im_start|>tool\nreply replyy <reply><|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_template_that_rewrites_earlier_turns_is_refused(make):
    with pytest.raises(DataError, match="rewrites earlier turns"):
        make(FORGETFUL).follow_up([*HISTORY, *ANSWER], ANSWER, last_id=IM_END)


def test_a_message_that_the_template_refuses_is_one_line(make):
    with pytest.raises(DataError, match="refuses it: only user and assistant roles"):
        make(MISTRAL).follow_up(HISTORY, [{"role": "tool", "content": "= 42"}], last_id=IM_END)


@pytest.mark.parametrize("adds_bos", [True, False])
def test_a_templates_beginning_of_text_is_not_doubled(make, adds_bos):
    ids = make(LLAMA, adds_bos=adds_bos).prompt(Prompt(id="p", messages="a"))
    assert ids[:2] == [3, 1]


@pytest.mark.parametrize("template", [CHATML, LLAMA])
def test_tokens_of_a_system_message_are_there_once(make, template):
    renderer = make(template)
    system = {"role": "system", "content": "Answer with zeal."}
    ids = renderer.prompt(Prompt(id="p", messages=(system, *HISTORY)))
    assert renderer.decode(ids).count("Answer with zeal.") == 1
    assert ids.count(1) == 3  # <|im_start|>: of the system, the user, and the reply


@pytest.mark.parametrize("text", ["ab", "<s>ab"])
def test_plain_text_begins_with_one_beginning_of_text(make, text):
    renderer = make(CHATML, adds_bos=True, chat_template=False)
    assert renderer.prompt(Prompt(id="p", messages=text)) == [3, *encoded(renderer, "ab")]


def test_plain_text_has_no_beginning_where_the_tokenizer_has_none(make):
    renderer = make(CHATML, chat_template=False)
    assert renderer.prompt(Prompt(id="p", messages="ab")) == encoded(renderer, "ab")


def test_tools_reach_the_template(make):
    renderer = make(CHATML)
    ids = renderer.prompt(Prompt(id="p", messages="a", tools=({"name": "search"},)))
    assert ids[: len(encoded(renderer, "<|im_start|>system\nsearch"))] == encoded(
        renderer, "<|im_start|>system\nsearch"
    )


def test_decode_leaves_special_tokens_out_and_spaces_as_drawn(make):
    renderer = make(CHATML)
    ids = [*encoded(renderer, " 52 , 17 ."), IM_END]
    assert renderer.decode(ids) == " 52 , 17 ."


@pytest.mark.parametrize(("eos", "expected"), [(0, (2, 0)), ([0, 2], (2, 0)), (None, (2,))])
def test_stop_ids_join_tokenizer_generation_config_and_template(tmp_path, make, eos, expected):
    make(CHATML)
    directory = make_chat_tokenizer(tmp_path)
    (directory / "generation_config.json").write_text(json.dumps({"eos_token_id": eos}))
    assert open_renderer(directory).stop_ids == expected


def test_the_templates_end_of_turn_is_a_stop_id_of_its_own(tmp_path):
    directory = make_chat_tokenizer(tmp_path)
    config = directory / "tokenizer_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "eos_token": "<|endoftext|>"}))
    assert open_renderer(directory).stop_ids == (0, IM_END)


def test_a_missing_chat_template_is_named(make):
    with pytest.raises(ConfigError, match=r"prompts.chat_template = true, but .* has no chat template"):
        make(None)


def test_a_broken_tokenizer_file_is_one_line(tmp_path, make):
    source = make_chat_tokenizer(tmp_path / "good")
    broken = shutil.copytree(source, tmp_path / "broken")
    (broken / "tokenizer.json").write_text("{")
    with pytest.raises(ConfigError, match="its tokenizer cannot be loaded"):
        open_renderer(broken)
