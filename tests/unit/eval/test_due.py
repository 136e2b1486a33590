"""No evaluation is jumped, and none is forgotten at the end."""

from strop.eval.due import occasion


def all_of(*, every, steps, begin=0):
    return [occasion(done, every=every, steps=steps) for done in range(begin, steps + 1)]


def test_the_start_every_step_that_is_due_and_the_end():
    assert all_of(every=2, steps=5) == ["start", None, "step 2", None, "step 4", "end"]


def test_the_last_step_is_always_evaluated():  # slime, prime-rl#2913: the tail was dropped
    for every in (0, 3, 7):
        assert occasion(5, every=every, steps=5) == "end", every


def test_a_last_step_that_is_due_anyway_is_evaluated_once():
    assert all_of(every=2, steps=4) == ["start", None, "step 2", None, "end"]


def test_a_resumed_run_jumps_over_none():  # prime-rl#1903
    for resumed_at in (1, 2, 3):
        whole = all_of(every=2, steps=6)
        assert all_of(every=2, steps=6, begin=resumed_at) == whole[resumed_at:], resumed_at


def test_a_run_of_no_steps_is_evaluated_at_its_start():
    assert all_of(every=0, steps=0) == ["start"]
