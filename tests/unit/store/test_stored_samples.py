import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from some_samples import assert_same, samples

from strop.errors import DataError, RunError
from strop.sample import Group, Prompt, Sample, Tokens
from strop.store.samples import read_advantages, read_samples, write_samples

PROMPT = Prompt(id="p", messages="hello")


@given(st.lists(samples(), max_size=4, unique_by=lambda s: s.index))
@settings(max_examples=8, deadline=None)
def test_samples_survive_parquet(tmp_path_factory, before):
    path = tmp_path_factory.mktemp("samples") / "groups.parquet"
    write_samples(path, [Group(0, PROMPT, before[:2]), Group(1, PROMPT, before[2:])])
    after = read_samples(path)
    for a, b in zip(before, after, strict=True):
        assert_same(a, b)


def test_advantages_come_back_by_sample_index(tmp_path):
    group = Group(0, PROMPT, [Sample(index=4, group_id=0), Sample(index=9, group_id=0)])
    write_samples(tmp_path / "s.parquet", [group], {9: np.array([0.1, -2.5], np.float32)})
    found = read_advantages(tmp_path / "s.parquet")
    assert list(found) == [9]
    np.testing.assert_array_equal(found[9], np.array([0.1, -2.5], np.float32))


def test_a_restored_sample_can_be_grown(tmp_path):
    sample = Sample(index=0, group_id=0, sequence=Tokens.context([1, 2]), prompt_length=2)
    write_samples(tmp_path / "s.parquet", [Group(0, PROMPT, [sample])])
    (back,) = read_samples(tmp_path / "s.parquet")
    back.append_response_tokens(tokens=[3], log_probs=[-1.0])
    assert back.tokens == [1, 2, 3]


def test_nothing_is_left_when_a_sample_cannot_be_stored(tmp_path):
    sample = Sample(index=7, group_id=0, prompt_id="row-1", metadata={"tool": object()})
    with pytest.raises(RunError) as error:
        write_samples(tmp_path / "s.parquet", [Group(0, PROMPT, [sample])])
    assert str(error.value) == (
        "sample 7 of prompt row-1: metadata: cannot be stored as JSON (Object of type object is not JSON "
        "serializable); use finite numbers, text, lists and tables"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_format_is_refused(tmp_path):
    table = pa.table({"index": [1]}).replace_schema_metadata({"strop.format": "2"})
    pq.write_table(table, tmp_path / "s.parquet")
    with pytest.raises(DataError, match=r"s\.parquet: format 2 is not known, expected 1; read it with"):
        read_samples(tmp_path / "s.parquet")


def test_a_parquet_file_that_strop_did_not_write_is_refused(tmp_path):
    pq.write_table(pa.table({"index": [1]}), tmp_path / "s.parquet")
    with pytest.raises(DataError, match=r"s\.parquet: format none is not known"):
        read_samples(tmp_path / "s.parquet")


def test_a_file_that_is_not_parquet_is_refused(tmp_path):
    (tmp_path / "s.parquet").write_text("hello")
    with pytest.raises(DataError, match=r"s\.parquet: is not a Parquet file"):
        read_samples(tmp_path / "s.parquet")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"s\.parquet: cannot be read"):
        read_samples(tmp_path / "s.parquet")
