"""Ragged sets of ids, one a token."""

import numpy as np
import pytest
from cases import case

from strop.kept import IDS, OFFSETS, Kept
from strop.tokens import MalformedTokens


def kept(*spans: list[int]) -> Kept:
    return Kept.of_spans([np.array(span, np.int32) for span in spans])


def spans(of: Kept) -> list[list[int]]:
    return [of.ids[a:b].tolist() for a, b in zip(of.offsets, of.offsets[1:], strict=False)]


def test_sets_end_to_end_have_offsets_that_go_on():
    # slime's values: offsets [0, 1] and [0, 2, 3] make [0, 1, 3, 4]
    both = Kept.joined([kept([5]), kept([6, 7], [8])])
    assert (both.offsets.tolist(), both.ids.tolist()) == ([0, 1, 3, 4], [5, 6, 7, 8])
    assert (both.ids.dtype, both.offsets.dtype) == (np.int32, np.int64)


def test_no_sets_at_all_are_empty_sets():
    none = Kept.joined([Kept.of_extras({}, 2), kept()])
    assert (len(none), none.offsets.tolist(), none.ids.dtype) == (2, [0, 0, 0], np.int32)


def test_tokens_are_taken_with_their_sets_in_any_order():
    assert spans(kept([1, 2], [], [3], [4, 5, 6]).take(np.array([3, 0, 1, 3]))) == [
        [4, 5, 6],
        [1, 2],
        [],
        [4, 5, 6],
    ]


def test_a_token_outside_of_its_set_is_found():
    sets = kept([1, 2], [], [3], [4, 5])
    assert sets.lacks(np.array([2, 9, 9, 5], np.int32)).tolist() == [False, False, True, False]


def test_extras_go_there_and_back():
    sets = kept([1, 2], [])
    assert spans(Kept.of_extras(sets.as_extras(), 2)) == [[1, 2], []]


def test_offsets_that_do_not_fit_the_tokens_are_refused():
    for offsets in [[0, 2], [0, 1, 1], [1, 1, 2], [0, 3, 2], []]:
        extras = {IDS: np.array([1, 2]), OFFSETS: np.array(offsets)}
        with case(offsets), pytest.raises(MalformedTokens, match=r"must rise from 0 to 2 in 3 numbers"):
            Kept.of_extras(extras, 2)
