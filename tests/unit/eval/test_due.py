"""No evaluation is jumped, and none is forgotten at the end."""

import pytest

from strop.eval.due import occasion


def all_of(*, every, steps, begin=0):
    return [occasion(done, every=every, steps=steps) for done in range(begin, steps + 1)]


def test_the_start_every_step_that_is_due_and_the_end():
    assert all_of(every=2, steps=5) == ["start", None, "step 2", None, "step 4", "end"]


@pytest.mark.parametrize("every", [0, 3, 7])
def test_the_last_step_is_always_evaluated(every):  # slime, prime-rl#2913: the tail was dropped
    assert occasion(5, every=every, steps=5) == "end"


def test_a_last_step_that_is_due_anyway_is_evaluated_once():
    assert all_of(every=2, steps=4) == ["start", None, "step 2", None, "end"]


@pytest.mark.parametrize("resumed_at", [1, 2, 3])
def test_a_resumed_run_jumps_over_none(resumed_at):  # prime-rl#1903
    whole = all_of(every=2, steps=6)
    assert all_of(every=2, steps=6, begin=resumed_at) == whole[resumed_at:]


def test_a_run_of_no_steps_is_evaluated_at_its_start():
    assert all_of(every=0, steps=0) == ["start"]
