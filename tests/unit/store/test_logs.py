import pytest

from strop.errors import DataError
from strop.store.jsonl import Log, read_log


def test_what_is_appended_is_read_at_once(tmp_path):
    log = Log(tmp_path / "m.jsonl")
    log.append({"step": 0, "reward/mean": 0.25})
    log.append({"step": 1, "reward/mean": float("nan")})
    assert read_log(tmp_path / "m.jsonl") == [
        {"step": 0, "reward/mean": 0.25},
        {"step": 1, "reward/mean": None},
    ]


def test_a_missing_log_is_empty(tmp_path):
    assert read_log(tmp_path / "m.jsonl") == []


def test_a_torn_last_line_is_no_line(tmp_path):
    (tmp_path / "m.jsonl").write_text('{"step":0}\n{"step":1,"rew')
    assert read_log(tmp_path / "m.jsonl") == [{"step": 0}]


def test_appending_after_a_torn_line_begins_a_whole_one(tmp_path):
    (tmp_path / "m.jsonl").write_text('{"step":0}\n{"step":1,"rew')
    Log(tmp_path / "m.jsonl").append({"step": 1})
    assert read_log(tmp_path / "m.jsonl") == [{"step": 0}, {"step": 1}]


def test_a_log_can_be_cut_back_to_an_offset_and_go_on(tmp_path):
    log = Log(tmp_path / "m.jsonl")
    log.append({"step": 0})
    offset = log.sync()
    log.append({"step": 1})
    log.truncate(offset)
    assert log.offset == offset
    log.append({"step": 1, "again": True})
    assert read_log(tmp_path / "m.jsonl") == [{"step": 0}, {"step": 1, "again": True}]


def test_offsets_count_what_was_there_before_opening(tmp_path):
    Log(tmp_path / "m.jsonl").append({"step": 0})
    assert Log(tmp_path / "m.jsonl").offset == len('{"step":0}\n')


def test_a_damaged_line_is_named(tmp_path):
    (tmp_path / "m.jsonl").write_text('{"step":0}\n{"step"\n')
    with pytest.raises(DataError) as error:
        read_log(tmp_path / "m.jsonl")
    assert str(error.value).startswith(f"{tmp_path}/m.jsonl:2: is not JSON: ")


def test_a_line_separator_inside_text_does_not_break_a_line(tmp_path):
    Log(tmp_path / "m.jsonl").append({"text": "a\u2028b\x0bc\nd"})
    assert read_log(tmp_path / "m.jsonl") == [{"text": "a\u2028b\x0bc\nd"}]
