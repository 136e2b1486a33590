"""Tokens that data gives: trained though the policy made none of them."""

import numpy as np
import pytest

from strop.tokens import MalformedTokens, Tokens


def test_given_tokens_are_trained_by_mask_and_by_nobody_sampled():
    given = Tokens.given([1, 2, 3], [False, True, True])
    assert given.is_given
    assert given.scored.tolist() == given.mask.tolist() == [False, True, True]
    assert not given.sampled.any()
    assert np.isnan(given.behavior).all()
    assert given.versions.tolist() == [-1, -1, -1]


def test_an_end_of_turn_that_is_also_the_padding_id_is_trained():
    pad = eos = 0
    ids, length = [1, 2, 2, 42, 3, 5, eos, pad, pad], 7  # known-faults D1: masks go by length, not by the id
    assert Tokens.given(ids, np.arange(len(ids)) < length).mask.tolist() == [True] * 7 + [False] * 2


def test_of_sampled_tokens_those_are_scored_whatever_is_trained():
    drawn = (Tokens.context([1]) + Tokens.drawn([2, 3], [-1.0, -1.0], [0, 0])).untrained()
    assert not drawn.is_given
    assert drawn.scored.tolist() == [False, True, True]


def test_given_and_sampled_tokens_do_not_mix():
    given = Tokens.given([1, 2], [False, True])
    assert (given + Tokens.context([3])).mask.tolist() == [False, True, False]
    with pytest.raises(MalformedTokens, match="mask may only hold where sampled does"):
        given + Tokens.drawn([3], [-1.0], [0])
