"""`prompts.chat_template_kwargs`: what reaches the template, and what no template would see."""

import pytest
from cases import case
from chat_model import CHATML, make_chat_tokenizer

from strop.errors import ConfigError
from strop.render.bytes import ByteRenderer
from strop.render.open import open_renderer
from strop.render.variables import refuse_unused
from strop.sample import Prompt

THINKING = (
    CHATML
    + "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think></think>' }}{% endif %}"
    "{% if greeting %}{{ greeting }}{% endif %}"
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return make_chat_tokenizer(tmp_path_factory.mktemp("thinking"), THINKING)


def text_of(renderer):
    return renderer.decode(renderer.prompt(Prompt(id="p", messages="a")))


def test_variables_reach_the_template(directory):
    plain, quiet = (
        open_renderer(directory),
        open_renderer(directory, template_kwargs={"enable_thinking": False}),
    )
    assert "<think>" not in text_of(plain)
    assert text_of(quiet) == text_of(plain) + "<think></think>"


def test_variables_reach_what_follows_a_reply_too(tmp_path):
    separated = CHATML.replace("<|im_end|>\\n", "<|im_end|>' + separator + '")
    renderer = open_renderer(make_chat_tokenizer(tmp_path, separated), template_kwargs={"separator": "=="})
    history, answer = [{"role": "user", "content": "a"}], [{"role": "user", "content": "b"}]
    bridge = renderer.follow_up(history, answer, last_id=renderer.stop_ids[0])
    reply = {"role": "assistant", "content": "c"}
    whole = renderer.prompt(Prompt(id="p", messages=(*history, reply, *answer)))
    assert whole[-len(bridge) :] == bridge
    assert renderer.decode(bridge) == "==user\nb==assistant\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("enable_thinkin", "uses no such variable; did you mean 'enable_thinking'?"),
        ("xyz", "uses no such variable; it uses enable_thinking, greeting"),
        ("messages", "strop gives 'messages' to the template itself; remove it"),
    ],
)
def test_a_variable_that_the_template_does_not_use_is_refused(directory, name, message):
    with pytest.raises(ConfigError, match=rf"^prompts.chat_template_kwargs.{name}: .*") as caught:
        open_renderer(directory, template_kwargs={name: True})
    assert message in str(caught.value)


def test_bytes_have_no_variables():
    with pytest.raises(
        ConfigError, match=r"chat_template_kwargs.enable_thinking: the byte-level tokenizer has no"
    ):
        ByteRenderer(template_kwargs={"enable_thinking": False})


def test_variables_are_found_wherever_a_template_asks_for_them():
    cases = [
        ("{% if not thinking is defined %}{% set thinking = false %}{% endif %}{{ thinking }}", "thinking"),
        ("{%- set thinking = thinking | default(true) -%}", "thinking"),
        ("{% macro m(x) %}{{ x }}{{ date_string }}{% endmacro %}{{ m(1) }}", "date_string"),
        (
            "{%- generation -%}{{ level }}{%- endgeneration -%}{% for m in x %}{% break %}{% endfor %}",
            "level, x",
        ),
        ({"default": "a", "tool_use": "{{ level }}"}, "level"),
    ]
    for template, used in cases:
        with case(template):
            refuse_unused(used.split(", "), template, what="it")
            with pytest.raises(ConfigError, match=rf"uses no such variable; it uses {used}$"):
                refuse_unused(["qqq"], template, what="it")


def test_a_template_that_is_none_is_one_line():
    with pytest.raises(ConfigError, match=r"^the template cannot be parsed: [^\n]+$"):
        refuse_unused(["a"], "{% if %}", what="the template")
