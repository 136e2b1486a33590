"""`path@[a:b]` takes the rows that Python would take."""

import pytest
from cases import case
from hypothesis import given
from hypothesis import strategies as st

from strop.errors import DataError
from strop.prompts.read import read_prompts
from strop.prompts.rows import Keys
from strop.prompts.slices import parse_slice


def taken(file, name="prompts.files"):
    return [prompt.messages for prompt in read_prompts([str(file)], Keys(), where=name).prompts]


@pytest.fixture(params=["jsonl", "jsonl.gz", "parquet", "saved", "shards"])
def ten(request, tables):
    """Ten rows, "0" to "9", in each format."""
    return tables(request.param, [{"prompt": str(i)} for i in range(10)])


def test_a_slice_takes_the_rows_that_slime_takes(ten):
    cases = [
        ("[0:3]", "012"),
        ("[3:]", "3456789"),
        ("[:4]", "0123"),
        ("[-3:]", "789"),
        ("[:-2]", "01234567"),
        ("[1:-1]", "12345678"),
        ("[-5:-2]", "567"),
        ("[-100:]", "0123456789"),
        ("[:]", "0123456789"),
        ("[8:100]", "89"),
    ]
    for part, expected in cases:
        assert "".join(taken(f"{ten}@{part}")) == expected, part


@given(start=st.none() | st.integers(-12, 12), stop=st.none() | st.integers(-12, 12))
def test_bounds_are_those_of_python(start, stop):
    text = f"data@[{'' if start is None else start}:{'' if stop is None else stop}]"
    first, last = parse_slice(text, where="prompts.files").bounds(lambda: 10)
    assert list(range(10))[first:last] == list(range(10))[start:stop]


def test_rows_are_counted_only_for_a_negative_bound():
    def count():
        raise AssertionError

    assert parse_slice("data@[2:4]", where="prompts.files").bounds(count) == (2, 4)
    assert parse_slice("data@[2:]", where="prompts.files").bounds(count) == (2, None)


def test_a_slice_does_not_rename_prompts(ten):
    whole = [p.id for p in read_prompts([str(ten)], Keys(), where="prompts.files").prompts]
    part = [p.id for p in read_prompts([f"{ten}@[-4:-1]"], Keys(), where="prompts.files").prompts]
    assert part == whole[6:9]


def test_two_slices_of_one_file_keep_their_names_and_only_a_row_taken_twice_gets_another(tables):
    file = tables("jsonl", [{"prompt": str(i)} for i in range(4)])
    read = read_prompts([f"{file}@[:2]", f"{file}@[1:3]"], Keys(), where="prompts.files")
    assert [p.id for p in read.prompts] == ["data.jsonl:1", "data.jsonl:2", "data.jsonl#2:2", "data.jsonl:3"]


def test_rows_outside_the_slice_may_be_broken(tmp_path):
    file = tmp_path / "data.jsonl"
    file.write_text('{"prompt": \n{"prompt": "b"}\n')
    assert taken(f"{file}@[1:]") == ["b"]


def test_a_slice_that_is_none_or_takes_nothing_is_one_line(tables):
    cases = [
        ("@[0:4:2]", "a slice has no step; give @[a:b] with whole numbers, such as @[:1000] or @[-100:]"),
        ("@[3]", "'@[3]' is not a slice; give @[a:b] with whole numbers"),
        ("@[a:b]", "'@[a:b]' is not a slice"),
        ("@[]", "'@[]' is not a slice"),
        ("@[0.5:1]", "'@[0.5:1]' is not a slice"),
        ("@[2:2]", "the slice takes no row; there are 10"),
        ("@[5:2]", "the slice takes no row; there are 10"),
        ("@[10:]", "the slice takes no row; there are 10"),
        ("@[0:3", "no such file; a slice is @[a:b]"),
    ]
    file = tables("jsonl", [{"prompt": str(i)} for i in range(10)])
    for part, message in cases:
        with case(part):
            with pytest.raises(DataError) as caught:
                taken(f"{file}{part}")
            assert str(caught.value).startswith(f"prompts.files = '{file}{part}': {message}")


def test_a_slice_without_rows_is_one_line_in_every_format(ten):
    with pytest.raises(DataError, match=r"the slice takes no row; there are 10$"):
        taken(f"{ten}@[:-10]")
