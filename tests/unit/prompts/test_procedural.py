"""Tasks made by a function."""

import random

import pytest
from cases import case

from strop.errors import DataError
from strop.prompts.procedural import ProceduralSource
from strop.sample import Prompt


def add(rng, *, split="train", top=9):
    a, b = rng.randint(0, top), rng.randint(0, top)
    return {"prompt": f"{a} + {b}?", "label": a + b, "metadata": {"top": top}}


def source(fn=add, seed=0, **options):
    return ProceduralSource(fn, options=options, seed=seed)


def test_task_i_depends_on_i_alone():
    tasks = source().next(6)
    again = source()
    assert again.next(2) + again.next(4) == tasks
    assert len({t.messages for t in tasks}) > 1


def test_restored_source_goes_on_where_the_first_stood():
    one, two = source(), source()
    one.next(7)
    two.restore(one.state())
    assert two.state()["position"] == 7
    assert two.next(3) == one.next(3)


def test_ids_tell_splits_options_and_seeds_apart():
    ids = [
        source(**o).next(1)[0].id for o in ({"split": "train"}, {"split": "test"}, {"top": 5}, {"seed": 1})
    ]
    assert len(set(ids)) == 4
    assert ids[0].startswith("add-train-")
    assert ids[0].endswith("-0")


def test_a_prompt_may_be_made_whole():
    def whole(rng):
        return Prompt(id="mine", messages="a", label=rng.random())

    assert source(whole).next(1)[0].id == "mine"


@pytest.mark.parametrize("other", [source(seed=1), source(top=5), source(lambda rng: {"prompt": "a"})])
def test_position_of_other_tasks_is_refused(other):
    with pytest.raises(DataError, match="saved position belongs to other tasks"):
        other.restore(source().state())


def unseeded(rng):
    return {"prompt": str(random.random())}


def broken(rng):
    return 1 / 0


def test_what_a_function_gets_wrong_is_named():
    cases = [
        (lambda rng: "a", "<lambda>, task 0: expected {'prompt': …, 'label': …} or a Prompt, got str 'a'"),
        (lambda rng: {"promt": "a"}, "<lambda>, task 0: unknown key 'promt'; did you mean 'prompt'?"),
        (lambda rng: {"label": 1}, "<lambda>, task 0: no 'prompt'; it made 'label'"),
        (lambda rng: {"prompt": 1}, "<lambda>, task 0: 'prompt' must be text or a list"),
        (lambda rng: Prompt(id="a", messages="a", media=("b",)), "a: Prompt.media = ('b',) is not supported"),
        (unseeded, "unseeded: two calls with equal generators made different tasks"),
    ]
    for fn, message in cases:
        with case(message):
            with pytest.raises(DataError) as caught:
                source(fn)
            assert str(caught.value).startswith(message)


def test_an_exception_is_named_with_its_line():
    line = broken.__code__.co_firstlineno + 1
    with pytest.raises(DataError, match=rf"broken, task 0: {__file__}:{line}: ZeroDivisionError: division"):
        source(broken)
