"""DAPO's soft overlong punishment as a reward."""

import pytest
from cases import case

from strop.rewards.overlong import Overlong
from strop.sample import Sample, Tokens


def test_it_grows_over_the_last_tokens_before_the_limit() -> None:
    for length, worth in [(0, 0), (16, 0), (18, -0.5), (20, -1), (30, -1)]:
        with case(length):
            drawn = Tokens.drawn([1] * length, [-1.0] * length, [0] * length)
            sample = Sample(index=0, group_id=0, sequence=Tokens.context([1, 2]) + drawn, prompt_length=2)
            assert Overlong(limit=20, cache=4)(sample) == worth


def test_a_cache_that_is_no_part_of_the_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="cache = 30 is not in 1 to limit = 20"):
        Overlong(limit=20, cache=30)
