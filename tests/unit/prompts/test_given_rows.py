"""Rows that hold what is trained: which fields are read, and what is said of those that are wrong."""

import json

import pytest
from cases import case

from strop.config.offline import Rows
from strop.config.tree import Prompts
from strop.errors import DataError
from strop.prompts.open import open_prompts

ASK = {"role": "user", "content": "a"}
SAY = {"role": "assistant", "content": "b"}
OTHER = {"role": "assistant", "content": "c"}


@pytest.fixture
def read(tmp_path):
    """The prompt that a row is read as."""

    def read(row, shape, **keys):
        (tmp_path / "data.jsonl").write_text(json.dumps(row) + "\n")
        section = Prompts(files=[str(tmp_path / "data.jsonl")], **keys)
        return open_prompts(section, shape).source.next(1)[0]

    return read


READ = {
    "a prompt and a response": ("texts", {"prompt": "a", "completion": "b"}, "a", {"response": "b"}),
    "a conversation": ("texts", {"messages": [ASK, SAY]}, (ASK,), {"response": [SAY]}),
    "a conversation of several turns": (
        "texts",
        {"messages": [ASK, SAY, ASK, OTHER]},
        (ASK,),
        {"response": [SAY, ASK, OTHER]},
    ),
    "a pair": (
        "pairs",
        {"prompt": "a", "rejected": "c", "chosen": "b"},
        "a",
        {"chosen": "b", "rejected": "c"},
    ),
    "a pair of messages": (
        "pairs",
        {"prompt": [ASK], "chosen": [SAY], "rejected": [OTHER]},
        (ASK,),
        {"chosen": [SAY], "rejected": [OTHER]},
    ),
    "a pair whose messages repeat the prompt": (
        "pairs",
        {"prompt": "a", "chosen": [ASK, SAY], "rejected": [ASK, OTHER]},
        "a",
        {"chosen": [SAY], "rejected": [OTHER]},
    ),
    "a pair without a prompt": (
        "pairs",
        {"chosen": [ASK, SAY, ASK, SAY], "rejected": [ASK, SAY, ASK, OTHER]},
        (ASK, SAY, ASK),
        {"chosen": [SAY], "rejected": [OTHER]},
    ),
    "a good response": ("marked", {"prompt": "a", "completion": "b", "label": True}, "a", {"desirable": "b"}),
    "a bad response": (
        "marked",
        {"prompt": "a", "completion": "b", "label": False},
        "a",
        {"undesirable": "b"},
    ),
}


def test_a_row_is_read_as(read):
    for name, (shape, row, messages, label) in READ.items():
        with case(name):
            prompt = read(row, shape)
            assert (prompt.id, prompt.messages, prompt.label) == ("data.jsonl:1", messages, label)
            assert list(prompt.label) == list(label), "the chosen one comes first"


def test_the_words_that_two_texts_begin_with_are_their_prompt(read):
    row = {"chosen": "Human: hi Assistant: well met", "rejected": "Human: hi Assistant: welcome"}
    prompt = read(row, "pairs", chat_template=False)
    assert prompt.messages == "Human: hi Assistant:"
    assert prompt.label == {"chosen": " well met", "rejected": " welcome"}


def test_fields_can_have_other_names(read):
    section = Rows(chosen_key="good", rejected_key="bad")
    row = {"question": "a", "good": "b", "bad": "c"}
    assert read(row, "pairs", input_key="question", rows=section).label == {"chosen": "b", "rejected": "c"}


@pytest.mark.parametrize(
    ("shape", "row"),
    [("texts", {"messages": [ASK, SAY]}), ("pairs", {"chosen": [ASK, SAY], "rejected": [ASK, OTHER]})],
)
def test_a_template_that_would_surround_nothing_is_refused(read, shape, row):
    with pytest.raises(DataError, match=r"holds its prompt, which prompts\.template cannot surround"):
        read(row, shape, template="Q: {prompt}")


WRONG = {
    "no response": (
        "texts",
        {"prompt": "a", "compltion": "b"},
        "no field 'completion' (prompts.rows.response_key)",
    ),
    "neither form": (
        "texts",
        {"text": "a"},
        "no field 'messages' (prompts.rows.messages_key) and none 'prompt'",
    ),
    "nothing said": ("texts", {"messages": [ASK]}, "'messages' has no message of the role 'assistant'"),
    "nobody asked": ("texts", {"messages": [SAY, ASK, SAY]}, "'messages' begins with the assistant"),
    "an empty response": ("texts", {"prompt": "a", "completion": " "}, "'completion' is empty"),
    "no chosen": ("pairs", {"prompt": "a", "rejected": "b"}, "no field 'chosen' (prompts.rows.chosen_key)"),
    "equal responses": (
        "pairs",
        {"prompt": "a", "chosen": "b", "rejected": "b"},
        "are the same: nothing tells",
    ),
    "nothing in common": (
        "pairs",
        {"chosen": [ASK, SAY], "rejected": [OTHER]},
        "'chosen' and 'rejected' have no beginning in common",
    ),
    "texts alone": ("pairs", {"chosen": "a b", "rejected": "a c"}, "no beginning in common"),
    "no mark": ("marked", {"prompt": "a", "completion": "b"}, "no field 'label' (prompts.label_key)"),
    "a mark that is none": (
        "marked",
        {"prompt": "a", "completion": "b", "label": "yes"},
        "'label' must be true or false, got str 'yes'",
    ),
}


def test_a_wrong_row_is_named(read):
    for name, (shape, row, message) in WRONG.items():
        with case(name):
            with pytest.raises(DataError) as caught:
                read(row, shape)
            assert "data.jsonl:1: " in str(caught.value)
            assert message in str(caught.value)
            assert "\n" not in str(caught.value)
