"""Several sources as one: exact shares, epochs of their own, one position."""

import json
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.errors import DataError
from strop.prompts.dataset import DatasetSource
from strop.prompts.mixture import MixturePart, MixtureSource
from strop.prompts.procedural import ProceduralSource
from strop.sample import Prompt

weights = st.lists(st.floats(0.01, 100), min_size=1, max_size=6)


def rows(n, **fields):
    return DatasetSource(
        [Prompt(id=f"d:{i}", messages=f"row {i}", **fields) for i in range(n)], shuffle=True, seed=1
    )


def task(rng):
    return {"prompt": f"{rng.random()}"}


def mixture(*weights, sizes=(3, 5, 7, 2, 4, 6)):
    """Data sets of different sizes, and a procedural source at the end."""
    sources = [*map(rows, sizes[: len(weights) - 1]), ProceduralSource(task, options={}, seed=1)]
    names = "abcdef"
    return MixtureSource([MixturePart(names[i], w, sources[i]) for i, w in enumerate(weights)])


def parts(prompts):
    return [prompt.metadata["source_name"] for prompt in prompts]


@settings(max_examples=30, deadline=None)
@given(weights=weights)
def test_after_every_draw_each_part_has_its_share_to_within_one_prompt(weights):
    drawn = parts(mixture(*weights).next(60))
    for name, weight in zip("abcdef", weights, strict=False):
        for n, had in enumerate(accumulate(part == name for part in drawn), start=1):
            assert abs(had - n * weight / sum(weights)) < 1 + 1e-9


def test_equal_weights_take_turns_and_others_their_exact_share():
    assert parts(mixture(1, 1, 1).next(6)) == list("abcabc")
    assert parts(mixture(0.7, 0.2, 0.1).next(1000)).count("b") == 200


@settings(max_examples=20, deadline=None)
@given(weights=weights, taken=st.integers(0, 25), more=st.integers(0, 25))
def test_a_restored_mixture_goes_on_where_the_first_stood(weights, taken, more):
    one, two = mixture(*weights), mixture(*weights)
    one.next(taken)
    two.next(3)
    two.restore(json.loads(json.dumps(one.state())))
    assert two.next(more) == one.next(more)


def test_batch_sizes_do_not_change_the_order():
    one, two = mixture(3, 2, 1), mixture(3, 2, 1)
    assert [p for n in (1, 4, 0, 7) for p in one.next(n)] == two.next(12)


def test_each_part_goes_through_its_own_epochs():
    drawn = [p.id for p in mixture(1, 1, sizes=(3,)).next(12) if p.metadata["source_name"] == "a"]
    assert sorted(drawn[:3]) == sorted(drawn[3:]) == ["a/d:0", "a/d:1", "a/d:2"]


def test_prompts_are_named_by_their_part_and_scored_by_its_reward():
    own = DatasetSource([Prompt(id="d:0", messages="a", reward="f1")], shuffle=False, seed=0)
    source = MixtureSource([MixturePart("x", 1, rows(1), "math"), MixturePart("y", 1, own, "math")])
    first, second = source.next(2)
    assert (first.id, first.metadata, first.reward) == ("x/d:0", {"source_name": "x"}, "math")
    assert (second.id, second.reward) == ("y/d:0", "f1")


def test_prompts_of_the_parts_themselves_stay_as_they_are():
    source = rows(1)
    MixtureSource([MixturePart("x", 1, source)]).next(1)
    assert source.next(1)[0].metadata == {}


@pytest.mark.parametrize(
    "other",
    [
        mixture(2, 1),
        mixture(1, 1, 1),
        MixtureSource(
            [MixturePart("z", 1, rows(3)), MixturePart("b", 1, ProceduralSource(task, options={}, seed=1))]
        ),
    ],
)
def test_a_position_in_another_mixture_is_refused(other):
    with pytest.raises(DataError, match="belongs to another mixture than"):
        other.restore(mixture(1, 1).state())


def test_a_position_in_other_data_of_a_part_is_refused_by_its_name():
    with pytest.raises(
        DataError, match=r"prompts.mixture, part 'a': the saved position belongs to other prompts"
    ):
        mixture(1, 1, sizes=(4,)).restore(mixture(1, 1, sizes=(3,)).state())


def test_a_row_that_names_another_source_is_refused():
    source = MixtureSource([MixturePart("x", 1, rows(1, metadata={"source_name": "web"}))])
    with pytest.raises(
        DataError, match=r"d:0: metadata.source_name = 'web', but in a mixture .* 'x'; rename one"
    ):
        source.next(1)
