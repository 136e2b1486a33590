"""What a row may hold beside its prompt: metadata, tools, a reward and a budget of its own."""

import pytest
from cases import case

from strop.errors import DataError
from strop.prompts.rows import Keys, make_prompt, with_own_choices
from strop.sample import Prompt


def made(row, **keys):
    return make_prompt({"prompt": "a", **row}, Keys(**keys), id="p", where="data.jsonl:3")


def test_metadata_and_tools_may_be_json_text():
    prompt = made({"metadata": '{"level": 2}', "tools": '[{"name": "t"}]'})
    assert (prompt.metadata, prompt.tools) == ({"level": 2}, ({"name": "t"},))


@pytest.mark.parametrize("nothing", [None, "", []])
def test_no_tools_are_no_tools(nothing):
    assert made({"tools": nothing}).tools == ()


def test_further_fields_join_the_metadata():
    prompt = made({"metadata": {"level": 2}, "source": "x", "unread": 1}, fields=("source", "absent"))
    assert prompt.metadata == {"level": 2, "source": "x"}


def test_rm_type_is_the_reward_of_the_row():
    prompt = made({"metadata": {"rm_type": "math"}})
    assert (prompt.reward, prompt.metadata) == ("math", {"rm_type": "math"})


def test_an_empty_choice_is_no_choice():
    """Arrow gives every row the fields of all."""
    prompt = made({"metadata": {"rm_type": None, "max_response_tokens": None, "level": None}})
    assert (prompt.reward, prompt.metadata) == (None, {"level": None})


def test_a_prompt_made_whole_may_choose_too():
    prompt = Prompt(id="p", messages="a", reward="exact", metadata={"rm_type": "math"})
    assert with_own_choices(prompt, where="task 0").reward == "exact"


def test_a_wrong_field_is_named_with_its_row():
    cases = [
        ({"metadata": "[1]"}, "'metadata' must be an object, or the JSON text of one, got str '[1]'"),
        ({"metadata": {"rm_type": 3}}, "metadata.rm_type must be the name of a reward, got int 3"),
        ({"metadata": {"rm_type": ""}}, "metadata.rm_type must be the name of a reward, got str ''"),
        *(
            (
                {"metadata": {"max_response_tokens": value}},
                f"metadata.max_response_tokens must be a whole number of at least 1, got {given}",
            )
            for value, given in [
                (0, "int 0"),
                (-5, "int -5"),
                (2.0, "float 2.0"),
                ("9", "str '9'"),
                (True, "bool True"),
            ]
        ),
        ({"tools": '{"a": 1}'}, "'tools' must be a list of objects, or the JSON text of one, got str"),
        ({"tools": "search"}, "'tools' is text, but not JSON: invalid character (byte 0), got str 'search'"),
        ({"tools": {}}, "'tools' must be a list of objects, or the JSON text of one, got dict {}"),
    ]
    for row, message in cases:
        with case(row):
            with pytest.raises(DataError) as caught:
                made(row)
            assert str(caught.value).startswith(f"data.jsonl:3: {message}")


def test_a_field_that_is_in_the_metadata_too_is_refused():
    with pytest.raises(DataError, match=r"'level' is a field \(prompts.metadata_fields\) and in 'metadata'"):
        made({"metadata": {"level": 1}, "level": 2}, fields=("level",))
