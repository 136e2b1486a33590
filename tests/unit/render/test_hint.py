"""What a teacher is shown before a prompt."""

import pytest

from strop.errors import DataError
from strop.render.bytes import ByteRenderer
from strop.render.hint import hinted
from strop.sample import Prompt

TEXT = Prompt(id="p", messages="What is 6 * 7?", metadata={"hint": "It is 42."})
SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "6 * 7?"}


def test_a_hint_is_a_system_message_before_the_prompt() -> None:
    told = hinted(TEXT, "hint", has_roles=True)
    assert told.messages == (
        {"role": "system", "content": "It is 42."},
        {"role": "user", "content": TEXT.messages},
    )
    plain, shown = (ByteRenderer().prompt(prompt) for prompt in (TEXT, told))
    assert shown[-len(plain) :] == plain
    assert ByteRenderer().decode(shown[: -len(plain)]) == "It is 42."


def test_a_system_message_that_is_there_comes_after_the_hint_within_one_message() -> None:
    told = hinted(Prompt(id="p", messages=(SYSTEM, USER), metadata={"why": "42"}), "why", has_roles=True)
    assert told.messages == ({"role": "system", "content": "42\n\nBe brief."}, USER)


def test_without_a_template_a_hint_is_text_before_the_text() -> None:
    assert hinted(TEXT, "hint", has_roles=False).messages == "It is 42.What is 6 * 7?"


@pytest.mark.parametrize("metadata", [{}, {"hint": ""}, {"hint": 3}])
def test_a_prompt_without_a_hint_is_named(metadata: dict[str, object]) -> None:
    with pytest.raises(
        DataError, match=r"^p: metadata\.hint = .*, expected a text: algo\.teacher\.hint_key says"
    ):
        hinted(Prompt(id="p", messages="a", metadata=metadata), "hint", has_roles=True)
