"""What a run says last is true of the run."""

from pathlib import Path

from strop.cli.closing import closing_lines

RUN = Path("runs/a")


def held_out(mean, *, n=4, failed=0, low=None, high=None, **passing):
    return {"mean": mean, "low": low, "high": high, "n": n, "failed": failed, **passing}


def lines(status="finished", *, steps=5, **evals):
    return closing_lines(RUN, {"status": status, "steps": steps, "eval": {"numbers": evals} if evals else {}})


def test_a_finished_run_says_what_it_learned_and_where_it_is():
    assert lines(start=held_out(0.125), end=held_out(0.75)) == [
        "numbers: held-out mean 0.125 → 0.750 (n = 4)",
        "run directory  runs/a",
        "look           strop show runs/a --step 0 --step last",
        "use the model  runs/a/checkpoints/step-5 (a Hugging Face model directory)",
    ]


def test_the_last_mean_has_its_interval_and_pass_at_k():
    end = held_out(0.75, low=0.694, high=0.799, pass_at_1=0.75, pass_at_2=0.8125, pass_at_4=None)
    assert lines(start=held_out(0.125, low=0.1, high=0.2), end=end)[0] == (
        "numbers: held-out mean 0.125 → 0.750, 95 % 0.694 to 0.799, pass@2 0.812 (n = 4)"
    )


def test_no_interval_begins_at_minus_zero():
    assert "95 % 0.000 to 0.002" in lines(start=held_out(0.001, low=-0.0001, high=0.002))[0]


def test_an_evaluation_in_which_all_failed_has_no_mean():
    last = held_out(None, n=0, failed=4)
    assert lines(start=held_out(0.125), end=last)[0] == (
        "numbers: held-out mean 0.125 → – (n = 0; 4 samples failed)"
    )


def test_a_run_of_no_steps_has_one_mean_and_no_checkpoint():
    assert lines(steps=0, start=held_out(0.125), end=held_out(0.125)) == [
        "numbers: held-out mean 0.125 (n = 4)",
        "run directory  runs/a",
    ]


def test_an_interrupted_run_says_how_to_go_on():
    assert lines("interrupted", steps=2, start=held_out(0.125)) == [
        "numbers: held-out mean 0.125 (n = 4)",
        "interrupted after 2 steps; go on with --store.dir runs/a --resume",
    ]


def test_a_run_without_held_out_sets_says_nothing_of_them():
    assert lines(steps=0) == ["run directory  runs/a"]
