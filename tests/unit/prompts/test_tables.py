"""Parquet files, their shards, and saved data sets: the prompts that JSONL gives, each error with its row."""

import datetime
import decimal
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import case

from strop.errors import DataError
from strop.prompts.read import read_prompts
from strop.prompts.rows import Keys

ROW = {
    "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
    "label": {"answer": [1, 2], "unit": None},
    "metadata": {"level": 3, "tags": ["a"]},
    "tools": [{"name": "t", "parameters": {"x": {"type": "int"}}}],
    "unread": b"\x00",
}


def read(path, keys=None, **more):
    return read_prompts([str(path)], keys or Keys(), where="prompts.files", **more).prompts


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path / "data.parquet")
    return path / "data.parquet"


@pytest.mark.parametrize("kind", ["parquet", "shards", "saved"])
def test_nested_columns_become_what_json_rows_become(tables, kind):
    rows = [ROW, {**ROW, "label": None}, {**ROW, "metadata": None}]
    plain = [{k: v for k, v in row.items() if k != "unread"} for row in rows]
    from_json = read(tables("jsonl", plain))
    for prompt, same in zip(read(tables(kind, rows)), from_json, strict=True):
        assert (prompt.messages, prompt.label, prompt.tools) == (same.messages, same.label, same.tools)
        assert prompt.metadata == same.metadata


def test_an_id_is_the_row_counted_from_0_through_all_shards(tables):
    ids = [p.id for p in read(tables("shards", [{"prompt": "a"}] * 4))]
    assert ids == [f"train:{i}" for i in range(4)]


def test_messages_lack_the_fields_that_only_other_messages_have(tables):
    calls = {"role": "assistant", "tool_calls": [{"name": "t"}]}
    said = {"role": "user", "content": "a"}
    (prompt,) = read(tables("parquet", [{"prompt": [said, calls]}]))
    assert prompt.messages == (said, calls)


def test_json_columns_are_parsed(tmp_path):
    """`datasets` writes columns of mixed types so."""
    storage = pa.array(['{"role": "user", "content": "a"}'])
    message = pa.ExtensionArray.from_storage(pa.json_(), storage)
    label = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": [1]}']))
    path = parquet(tmp_path, prompt=pa.ListArray.from_arrays([0, 1], message), label=label)
    (prompt,) = read(path)
    assert (prompt.messages, prompt.label) == (({"role": "user", "content": "a"},), {"a": [1]})


def test_maps_and_dictionary_columns_are_plain(tmp_path):
    label = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    path = parquet(tmp_path, prompt=pa.array(["p"]).dictionary_encode(), label=label)
    assert (read(path)[0].messages, read(path)[0].label) == ("p", {"a": 1})


def test_what_json_cannot_hold_is_named_with_its_row(tmp_path):
    cases = [
        (decimal.Decimal("1.5"), "'label' holds Decimal Decimal('1.5'), which JSON cannot hold; store"),
        (datetime.date(2026, 1, 2), "'label' holds date datetime.date(2026, 1, 2)"),
        (b"\x00", "'label' holds bytes b'\\x00'"),
        (float("nan"), "'label' holds nan, which JSON cannot hold; fill it in, or leave the row out"),
        ({"deep": [float("inf")]}, "'label' holds inf"),
    ]
    for value, message in cases:
        with case(value):
            path = parquet(tmp_path, prompt=["a", "b"], label=pa.array([None, value]))
            with pytest.raises(DataError) as caught:
                read(path)
            assert str(caught.value).startswith(f"{path}:row 1: {message}")


def test_a_wrong_input_key_lists_every_column(tables):
    path = tables("parquet", [{"question": "a", "answer": "b", "level": 1}])
    with pytest.raises(DataError) as caught:
        read(path, Keys(input="questions"))
    assert str(caught.value) == (
        f"{path}:row 0: no field 'questions' (prompts.input_key); did you mean 'question'? "
        "(the row has 'question', 'answer', 'level')"
    )


def test_a_wrong_label_key_lists_every_column(tables):
    path = tables("saved", [{"prompt": "a", "answer": "b", "level": 1}] * 3)
    with pytest.raises(DataError, match=r"label_key = 'lable': .*\(they have 'prompt', 'answer', 'level'\)"):
        read(path, Keys(label="lable"))


def test_only_the_columns_asked_for_are_read(tmp_path):
    path = parquet(tmp_path, prompt=["a"] * 10, image=[b"x" * 10_000] * 10)
    before = pa.total_allocated_bytes()
    rows = read_prompts([str(path)], Keys(), where="prompts.files")
    assert pa.total_allocated_bytes() - before < 10_000
    assert len(rows.prompts) == 10


@pytest.mark.parametrize("name", ["data.parquet", "train-00000-of-00001.parquet"])
def test_a_broken_parquet_file_is_one_line(tmp_path, name):
    (tmp_path / name).write_text("not Parquet")
    with pytest.raises(DataError, match=rf"{name}: cannot be read as Parquet: [^\n]+$"):
        read(tmp_path / name)


def test_a_broken_stream_is_one_line(tables):
    path = tables("saved", [{"prompt": "a"}] * 3)
    (path / "data-00001-of-00002.arrow").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"data-00001-of-00002.arrow: cannot be read as an Arrow stream: "):
        read(path)


def test_a_stream_that_the_state_names_and_that_is_not_there_is_named(tables):
    path = tables("saved", [{"prompt": "a"}] * 3)
    (path / "data-00001-of-00002.arrow").unlink()
    with pytest.raises(DataError, match=r"state.json names data-00001-of-00002.arrow, which is not there"):
        read(path)


def test_a_missing_shard_is_not_passed_over(tables):
    path = tables("shards", [{"prompt": "a"}] * 4)
    path.with_name("train-00001-of-00002.parquet").unlink()
    with pytest.raises(DataError, match=r"1 of 2 shards are there \(train-00000-of-00002.parquet…\)"):
        read(path)


def test_the_splits_of_a_saved_dictionary_are_listed(tables, tmp_path):
    tables("saved", [{"prompt": "a"}] * 3).rename(tmp_path / "test")
    (tmp_path / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    with pytest.raises(DataError) as caught:
        read(tmp_path)
    assert str(caught.value) == (
        f"prompts.files = '{tmp_path}': the directory holds 2 splits; name one: "
        f"{tmp_path}/train, {tmp_path}/test"
    )
    assert len(read(tmp_path / "test")) == 3


def test_the_splits_of_a_directory_of_shards_are_listed(tables, tmp_path):
    tables("shards", [{"prompt": "a"}] * 2)
    assert len(read(tmp_path)) == 2
    pq.write_table(pa.table({"prompt": ["b"]}), tmp_path / "test-00000-of-00001.parquet")
    with pytest.raises(DataError) as caught:
        read(tmp_path)
    assert str(caught.value) == (
        f"prompts.files = '{tmp_path}': the directory holds several tables; name one of "
        f"{tmp_path}/test, {tmp_path}/train"
    )
    assert [p.id for p in read(tmp_path / "test")] == ["test:0"]


def test_a_directory_of_one_table_in_many_files_is_read_in_their_order(tmp_path):
    for number in (1, 0):
        pq.write_table(pa.table({"prompt": [str(number)]}), tmp_path / f"000{number}.parquet")
    assert [p.messages for p in read(tmp_path)] == ["0", "1"]


def test_other_formats_are_refused_by_name_with_the_way_out(tmp_path):
    cases = [
        ("a.csv", ".csv files are not read; write the rows as JSONL or Parquet; JSONL (also .gz) and"),
        ("a.csv.gz", ".gz files are not read; write the rows as JSONL or Parquet"),
        ("a.zst", ".zst files are not read; decompress it"),
        (
            "a.arrow",
            ".arrow files are not read; name the directory that `datasets` saved, with its state.json",
        ),
    ]
    for name, message in cases:
        with case(name):
            (tmp_path / name).write_text("x")
            with pytest.raises(DataError) as caught:
                read(tmp_path / name)
            assert str(caught.value).startswith(f"prompts.files = '{tmp_path / name}': {message}")


def test_a_directory_without_data_says_where_there_is_some(tables, tmp_path):
    place = tmp_path / "repository"
    place.mkdir()
    with pytest.raises(DataError, match=r"without a data set that `datasets` saved$"):
        read(place)
    tables("saved", [{"prompt": "a"}] * 3).rename(place / "main")
    with pytest.raises(DataError, match=rf"; it holds {place}/main: name those"):
        read(place)


@pytest.mark.slow
def test_what_datasets_saves_is_read(tmp_path):
    import datasets

    datasets.disable_progress_bars()
    rows = [{**ROW, "label": i} for i in range(5)]
    made = datasets.Dataset.from_list(rows, on_mixed_types="use_json")
    both = datasets.DatasetDict({"train": made, "test": made.select([4, 1])})
    both.save_to_disk(tmp_path / "saved", num_shards={"train": 2, "test": 1})
    made.to_parquet(tmp_path / "data.parquet")
    assert [p.label for p in read(tmp_path / "saved" / "train")] == [0, 1, 2, 3, 4]
    assert [p.label for p in read(tmp_path / "saved" / "test")] == [4, 1]
    for prompt in (read(tmp_path / "saved" / "train")[2], read(tmp_path / "data.parquet")[2]):
        assert (list(prompt.messages), list(prompt.tools)) == (ROW["prompt"], ROW["tools"])
        assert prompt.metadata == ROW["metadata"]
