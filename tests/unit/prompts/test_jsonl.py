"""Rows of JSONL files: what is read, and every broken row as one line."""

import pytest
from cases import case

from strop.errors import DataError
from strop.prompts.read import read_prompts
from strop.prompts.rows import Keys


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Reads one file with this content, named as a user would from its directory."""
    monkeypatch.chdir(tmp_path)

    def reader(content, keys=None):
        content = content if isinstance(content, bytes) else content.encode()
        (tmp_path / "data.jsonl").write_bytes(content)
        return read_prompts(["data.jsonl"], keys or Keys(), where="prompts.files").prompts

    return reader


def test_rows_become_prompts(read):
    row = '{"prompt": "a", "label": 1, "metadata": {"level": 2}, "tools": [{"name": "t"}], "more": 0}'
    (prompt,) = read(row)
    assert (prompt.messages, prompt.label, prompt.metadata) == ("a", 1, {"level": 2})
    assert prompt.tools == ({"name": "t"},)


def test_fields_answer_to_other_names(read):
    (prompt,) = read('{"question": "a", "answer": "b"}', Keys(input="question", label="answer"))
    assert (prompt.messages, prompt.label) == ("a", "b")


def test_a_label_may_be_absent(read):
    assert read('{"prompt": "a"}')[0].label is None


def test_blank_lines_are_skipped_and_counted_as_lines(read):
    prompts = read('\n{"prompt": "a"}\r\n   \n{"prompt": "b"}')
    assert [p.id for p in prompts] == ["data.jsonl:2", "data.jsonl:4"]


def test_a_byte_order_mark_is_skipped(read):
    assert read(b'\xef\xbb\xbf{"prompt": "a"}')[0].messages == "a"


def test_chat_messages_are_kept_as_they_are(read):
    (prompt,) = read('{"prompt": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}')
    assert prompt.messages == ({"role": "user", "content": [{"type": "text", "text": "a"}]},)


def test_files_are_read_in_order_and_a_shared_name_gets_its_folder(tmp_path):
    files = [tmp_path / "b" / "data.jsonl", tmp_path / "a" / "data.jsonl", tmp_path / "other.jsonl"]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text('{"prompt": "a"}\n')
    prompts = read_prompts([str(f) for f in files], Keys(), where="prompts.files").prompts
    assert [p.id for p in prompts] == ["b/data.jsonl:1", "a/data.jsonl:1", "other.jsonl:1"]


def test_a_file_listed_twice_counts_twice(tmp_path):
    file = tmp_path / "data.jsonl"
    file.write_text('{"prompt": "a"}\n')
    prompts = read_prompts([str(file), str(file)], Keys(), where="prompts.files").prompts
    assert [p.id for p in prompts] == ["data.jsonl:1", "data.jsonl#2:1"]


def test_a_broken_row_is_named_with_its_line(read):
    cases = [
        ('{"prompt": "b"', "not valid JSON: Input data was truncated"),
        ('{"prompt": b}', "not valid JSON: invalid character (byte 11)"),
        ('{"prompt": "b", "label": NaN}', "not valid JSON: invalid character (byte 25)"),
        (b'{"prompt": "\xff"}', "not valid JSON: Invalid UTF-8 encoded string"),
        ('["b"]', "expected a JSON object, got list ['b']"),
        (
            '{"promt": "b", "label": 1}',
            "no field 'prompt' (prompts.input_key); did you mean 'promt'? (the row has 'promt', 'label')",
        ),
        ('{"prompt": "  "}', "'prompt' is empty"),
        ('{"prompt": 3}', "'prompt' must be text or a list of chat messages, got int 3"),
        ('{"prompt": []}', "'prompt' is an empty list of chat messages"),
        (
            '{"prompt": ["b"]}',
            "'prompt'[0] must be a message {'role': …, 'content': …}, got str 'b'",
        ),
        ('{"prompt": [{"content": "b"}]}', "'prompt'[0] needs a text 'role', got NoneType None"),
        (
            '{"prompt": [{"role": "user", "content": 3}]}',
            "'prompt'[0] needs a text 'content', got int 3",
        ),
        (
            '{"prompt": [{"role": "user", "content": [{"type": "image"}]}]}',
            "'prompt'[0]: only text parts {'type': 'text', 'text': …} are read, got dict {'type': 'image'}",
        ),
        (
            '{"prompt": "b", "metadata": "x"}',
            "'metadata' is text, but not JSON: invalid character (byte 0), got str 'x'",
        ),
        (
            '{"prompt": "b", "tools": {"a": 1}}',
            "'tools' must be a list of objects, or the JSON text of one, got dict {'a': 1}",
        ),
    ]
    for row, message in cases:
        with case(row):
            row = row if isinstance(row, bytes) else row.encode()
            with pytest.raises(DataError) as caught:
                read(b'{"prompt": "a"}\n\n' + row + b"\n")
            assert str(caught.value) == f"data.jsonl:3: {message}"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            Keys(label="anser"),
            "prompts.label_key = 'anser': no row of data.jsonl has it; did you mean 'answer'?",
        ),
        (Keys(metadata="info"), "prompts.metadata_key = 'info': no row"),
        (Keys(tools="functions"), "prompts.tool_key = 'functions': no row"),
    ],
)
def test_a_renamed_field_that_no_row_has_is_named(read, keys, message):
    with pytest.raises(DataError) as caught:
        read('{"prompt": "a", "answer": 1}', keys)
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith("(they have 'prompt', 'answer')")


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_rows_is_named(read, content):
    with pytest.raises(DataError, match=r"prompts.files = 'data.jsonl': the file holds no rows"):
        read(content)


def test_a_missing_file_is_named_with_the_nearest(read, tmp_path):
    read('{"prompt": "a"}')
    with pytest.raises(DataError) as caught:
        read_prompts(["date.jsonl"], Keys(), where="prompts.files")
    assert str(caught.value) == "prompts.files = 'date.jsonl': no such file; did you mean 'data.jsonl'?"
