"""A list of prompts as an endless source."""

import random

import pytest
from cases import case
from hypothesis import given
from hypothesis import strategies as st

from strop.errors import DataError
from strop.prompts.dataset import DatasetSource
from strop.sample import Prompt, Sampling


def rows(n, label=None):
    return [Prompt(id=f"data.jsonl:{i}", messages=f"row {i}", label=label) for i in range(n)]


def ids(prompts):
    return [int(p.id.rpartition(":")[2]) for p in prompts]


def test_three_rows_give_eight_prompts():
    source = DatasetSource(rows(3), shuffle=False, seed=0)
    assert ids(source.next(8)) == [0, 1, 2, 0, 1, 2, 0, 1]
    assert (source.state()["epoch"], source.state()["offset"]) == (2, 2)


def test_batches_that_do_not_divide_the_data_visit_all_of_it():
    source = DatasetSource(rows(30), shuffle=True, seed=0)
    seen = ids(source.next(16)) + ids(source.next(16))
    assert sorted(seen[:30]) == list(range(30))


def test_thirty_prompts_in_batches_of_sixteen_are_not_the_first_sixteen_again_and_again():
    source = DatasetSource(rows(30), shuffle=False, seed=0)
    assert [ids(source.next(16)), ids(source.next(16))] == [list(range(16)), [*range(16, 30), 0, 1]]


def test_a_request_that_crosses_an_epoch_is_filled_and_the_offset_stays_in_range():
    source = DatasetSource(rows(5), shuffle=False, seed=0)
    source.next(3)
    assert ids(source.next(12)) == [3, 4, *range(5), *range(5)]
    assert (source.state()["epoch"], source.state()["offset"]) == (3, 0)


@given(size=st.integers(1, 9), batches=st.lists(st.integers(1, 7), min_size=1, max_size=6))
def test_nothing_is_dropped_at_the_end_of_an_epoch(size, batches):
    source = DatasetSource(rows(size), shuffle=True, seed=3)
    seen = [i for n in batches for i in ids(source.next(n))]
    whole = [seen[start : start + size] for start in range(0, len(seen) - size + 1, size)]
    assert all(sorted(epoch) == list(range(size)) for epoch in whole)


def test_two_prompts_with_the_same_text_stay_two():
    twins = [Prompt(id=f"d:{i}", messages="the same", label=i) for i in range(2)]
    drawn = DatasetSource(twins, shuffle=False, seed=0).next(4)
    assert [(p.id, p.label) for p in drawn] == [("d:0", 0), ("d:1", 1)] * 2


def test_each_epoch_has_an_order_of_its_own_over_the_same_rows():
    source = DatasetSource(rows(20), shuffle=True, seed=0)
    first, second = ids(source.next(20)), ids(source.next(20))
    assert first != second
    assert sorted(first) == sorted(second) == list(range(20))


def test_the_order_of_an_epoch_needs_no_earlier_one():
    source, late = (DatasetSource(rows(9), shuffle=True, seed=0) for _ in range(2))
    source.next(27)
    late.restore(late.state() | {"epoch": 3})
    assert ids(source.next(9)) == ids(late.next(9))


def test_seed_decides_the_order_and_global_random_state_does_not():
    random.seed(1)
    before = random.getstate()
    one = ids(DatasetSource(rows(20), shuffle=True, seed=1).next(20))
    assert random.getstate() == before
    assert one == ids(DatasetSource(rows(20), shuffle=True, seed=1).next(20))
    assert one != ids(DatasetSource(rows(20), shuffle=True, seed=2).next(20))


@given(size=st.integers(1, 12), taken=st.integers(0, 40), more=st.integers(0, 30), shuffle=st.booleans())
def test_restored_source_goes_on_where_the_first_stood(size, taken, more, shuffle):
    source = DatasetSource(rows(size), shuffle=shuffle, seed=5)
    source.next(taken)
    again = DatasetSource(rows(size), shuffle=shuffle, seed=5)
    again.restore(source.state())
    assert again.state() == source.state()
    assert again.next(more) == source.next(more)


def test_end_of_an_epoch_is_the_start_of_the_next():
    source = DatasetSource(rows(4), shuffle=True, seed=0)
    source.next(4)
    assert (source.state()["epoch"], source.state()["offset"]) == (1, 0)


def test_position_in_other_data_or_another_order_is_refused():
    cases = [
        DatasetSource(rows(5), shuffle=True, seed=0),
        DatasetSource(rows(4)[::-1], shuffle=True, seed=0),
        DatasetSource(rows(4), shuffle=True, seed=1),
        DatasetSource(rows(4), shuffle=False, seed=0),
    ]
    state = DatasetSource(rows(4), shuffle=True, seed=0).state()
    for other in cases:
        with case(other.state()), pytest.raises(DataError, match="saved position belongs to other prompts"):
            other.restore(dict(state))


def test_a_corrected_label_keeps_the_position():
    state = DatasetSource(rows(4), shuffle=True, seed=0).state()
    DatasetSource(rows(4, label=object()), shuffle=True, seed=0).restore(state)


def test_prompts_that_cannot_be_trained_on_are_refused():
    cases = [
        ([], "holds no prompts"),
        (rows(2) + rows(1), "two prompts have the id 'data.jsonl:0'"),
        ([Prompt(id="p", messages="a", media=("x.png",))], "Prompt.media = .* not supported yet"),
        ([Prompt(id="p", messages="a", sampling=Sampling(4))], "Prompt.sampling = .* not supported yet"),
    ]
    for prompts, message in cases:
        with case(prompts), pytest.raises(DataError, match=message):
            DatasetSource(prompts, shuffle=False, seed=0)
