"""`prompts.on_bad_row`: the run stops at the first malformed row, or leaves them out and counts them."""

import gzip

import pytest

from strop.config.tree import EvalSet, Part, Prompts
from strop.errors import DataError
from strop.prompts.open import open_eval_set, open_prompts

LINES = ['{"prompt": "a"}', "{broken", '{"prompt": "b"}', '{"promt": "c"}', "[]", '{"prompt": "d"}']


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(LINES))
    return str(path)


def test_the_first_malformed_row_stops(file):
    with pytest.raises(DataError, match=rf"^{file}:2: not valid JSON"):
        open_prompts(Prompts(files=[file]))


def test_malformed_rows_are_left_out_counted_and_the_first_is_told(file):
    opened = open_prompts(Prompts(files=[file], on_bad_row="skip", shuffle=False))
    assert [p.id for p in opened.source.next(3)] == ["data.jsonl:1", "data.jsonl:3", "data.jsonl:6"]
    assert opened.bad.count == 3
    assert opened.bad.first.startswith(f"{file}:2: not valid JSON: ")


def test_malformed_rows_of_all_parts_are_counted(file):
    parts = [Part(name="a", files=[file]), Part(name="b", files=[f"{file}@[2:]"])]
    opened = open_prompts(Prompts(mixture=parts, on_bad_row="skip"))
    assert opened.bad.count == 5
    assert opened.bad.first.startswith(f"{file}:2: not valid JSON: ")


def test_a_slice_counts_malformed_rows_as_rows(file):
    opened = open_prompts(Prompts(files=[f"{file}@[1:3]"], on_bad_row="skip"))
    assert [p.messages for p in opened.source.next(1)] == ["b"]
    assert opened.bad.count == 1


def test_only_malformed_rows_are_an_error_with_the_first_reason(file):
    with pytest.raises(DataError) as caught:
        open_prompts(Prompts(files=[file], input_key="question", on_bad_row="skip"))
    assert str(caught.value) == (
        f"prompts.files = '{file}': every row is malformed; the first: {file}:1: no field 'question' "
        "(prompts.input_key) (the row has 'prompt')"
    )


def test_a_held_out_set_stops_at_a_malformed_row(file):
    with pytest.raises(DataError, match=rf"^{file}:2: not valid JSON"):
        open_eval_set(EvalSet(name="dev", files=[file]), Prompts(on_bad_row="skip"))


def test_rows_of_messages_without_a_template_are_malformed(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"prompt": [{"role": "user", "content": "a"}]}\n{"prompt": "b"}')
    opened = open_prompts(Prompts(files=[str(path)], on_bad_row="skip", chat_template=False))
    assert (len(opened.source), opened.bad.count) == (1, 1)


def test_gzip_that_ends_early_is_never_skipped(tmp_path):
    path = tmp_path / "data.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"prompt": "a"}\n' * 5000)[:-20])
    with pytest.raises(DataError, match=r"data.jsonl.gz: cannot be read after line \d+: "):
        open_prompts(Prompts(files=[str(path)], on_bad_row="skip"))


def test_a_list_over_several_lines_says_how_to_make_jsonl(tmp_path):
    path = tmp_path / "data.json"
    path.write_text('[\n  {"prompt": "a"}\n]\n')
    with pytest.raises(
        DataError, match=r"data.json:1: not valid JSON: a list over several lines is not JSONL"
    ):
        open_prompts(Prompts(files=[str(path)]))
