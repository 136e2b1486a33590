"""The byte-level renderer, id by id."""

import pytest
from cases import case

from strop.errors import DataError
from strop.render.bytes import ByteRenderer
from strop.sample import Prompt


def prompt(messages, **fields):
    return Prompt(id="p", messages=messages, **fields)


def test_text_becomes_one_turn_of_the_user():
    assert ByteRenderer().prompt(prompt("hé")) == [257, *b"h\xc3\xa9", 256, 258]


def test_every_role_has_its_token():
    turns = ({"role": "system", "content": "a"}, {"role": "assistant", "content": "b"})
    assert ByteRenderer().prompt(prompt(turns)) == [260, 97, 256, 258, 98, 256, 258]


def test_without_a_template_text_stands_alone():
    assert ByteRenderer(chat_template=False).prompt(prompt("ab")) == [97, 98]


def test_text_parts_are_joined():
    parts = ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},)
    assert ByteRenderer().prompt(prompt(parts)) == [257, 97, 98, 256, 258]


def test_follow_up_closes_only_a_turn_that_is_open():
    answer = [{"role": "tool", "content": "7"}]
    assert ByteRenderer().follow_up([], answer, last_id=256) == [259, 55, 256, 258]
    assert ByteRenderer().follow_up([], answer, last_id=65) == [256, 259, 55, 256, 258]


def test_decode_leaves_specials_out_and_marks_broken_bytes():
    assert ByteRenderer().decode([258, 104, 0xC3, 256, 263]) == "h\ufffd"


def test_what_cannot_be_shown_is_refused():
    cases = [
        (ByteRenderer(), prompt("a", tools=({"name": "t"},)), "cannot show tools"),
        (ByteRenderer(), prompt(({"role": "critic", "content": "a"},)), "got 'critic'"),
        (ByteRenderer(), prompt(({"role": "user", "content": None},)), "has none"),
        (ByteRenderer(chat_template=False), prompt(({"role": "user", "content": "a"},)), "needs plain text"),
        (
            ByteRenderer(chat_template=False),
            prompt("a", tools=({"name": "t"},)),
            "no place for the prompt's tools",
        ),
    ]
    for renderer, given, message in cases:
        with case(renderer, given), pytest.raises(DataError, match=message):
            renderer.prompt(given)


def test_turns_without_a_template_are_refused():
    with pytest.raises(DataError, match=r"chat_template = false, but the environment answers"):
        ByteRenderer(chat_template=False).follow_up([], [], last_id=256)
