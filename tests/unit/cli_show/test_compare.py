import json

import pytest
from some_runs import CONFIG, write_run

from strop.cli.compare import main
from strop.errors import ConfigError


def exact(capsys, a, b):
    code = main([str(a), str(b), "--exact"])
    return code, capsys.readouterr().out.strip()


def differing(tmp_path, capsys, change=None, **other):
    a = write_run(tmp_path / "a")
    b = write_run(tmp_path / "b", change=change, **other)
    code, line = exact(capsys, a, b)
    assert code == 1
    return line.replace(f"{tmp_path}/", "")


def test_equal_runs_are_equal_though_their_times_differ(tmp_path, capsys):
    a, b = write_run(tmp_path / "a"), write_run(tmp_path / "b")
    assert exact(capsys, a, b) == (0, f"equal: {a} and {b}, 2 steps and the weights they end in")


def test_the_first_metric_that_differs_is_named_with_both_values(tmp_path, capsys):
    def change(step, record, pair, advantages):
        record["reward/mean"] = 0.25 if step == 1 else 0.5

    assert differing(tmp_path, capsys, change) == "step 1: reward/mean = 0.5 and 0.25"


def test_a_metric_of_one_run_only_is_a_difference(tmp_path, capsys):
    def change(step, record, pair, advantages):
        record["train/extra"] = 1

    assert differing(tmp_path, capsys, change) == "step 0: train/extra = absent and 1"


def test_a_token_that_differs_is_found_in_the_samples(tmp_path, capsys):
    def change(step, record, pair, advantages):
        if step == 1:
            ids = pair[0].sequence.ids.copy()
            ids[4] = 9
            pair[0].sequence = type(pair[0].sequence)(
                ids,
                pair[0].sequence.sampled,
                pair[0].sequence.mask,
                pair[0].sequence.behavior,
                pair[0].sequence.versions,
            )

    assert differing(tmp_path, capsys, change) == "step 1: sample 2: ids at 4: 111 and 9"


def test_a_reward_that_differs_is_found_in_the_samples(tmp_path, capsys):
    def change(step, record, pair, advantages):
        pair[1].reward = 0.75

    assert differing(tmp_path, capsys, change) == "step 0: sample 1: reward = 1.0 and 0.75"


def test_an_advantage_that_differs_is_found(tmp_path, capsys):
    def change(step, record, pair, advantages):
        advantages[1] = 0.5

    assert differing(tmp_path, capsys, change) == "step 0: sample 1: advantage at 0: 0.7 and 0.5"


def test_a_step_that_one_run_lacks_is_a_difference(tmp_path, capsys):
    assert differing(tmp_path, capsys, prompts=("p0", "p1", "p2")) == "step 2: is only in b"


def test_weights_that_differ_are_a_difference(tmp_path, capsys):
    assert differing(tmp_path, capsys, weights=b"Weights") == (
        "checkpoint of step 2: model.safetensors has SHA-256 9a129038d9a00aed and 147ec15498661dd9"
    )


@pytest.mark.parametrize(("status", "shown"), [("interrupted", "interrupted"), ("", "unfinished")])
def test_a_run_that_did_not_finish_is_not_equal(tmp_path, capsys, status, shown):
    assert differing(tmp_path, capsys, status=status) == f"b: is {shown}, expected finished"


def test_an_evaluation_that_differs_is_found(tmp_path, capsys):
    a, b = write_run(tmp_path / "a"), write_run(tmp_path / "b")
    lines = (b / "eval" / "results.jsonl").read_text().splitlines()
    last = {**json.loads(lines[-1]), "mean": 0.5}
    (b / "eval" / "results.jsonl").write_text("\n".join([lines[0], json.dumps(last)]) + "\n")
    assert exact(capsys, a, b) == (1, "eval numbers after 2 steps: mean = 1.0 and 0.5")


def test_the_comparison_shows_keys_evaluations_and_rewards(tmp_path, capsys):
    other = {"values": {**CONFIG["values"], "train": {"optim": {"lr": 1e-5}}}}
    a, b = write_run(tmp_path / "a"), write_run(tmp_path / "b", config=other)
    assert main([str(a), str(b)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["train.optim.lr", "1e-06", "1e-05"] in rows
    assert ["numbers,", "after", "2", "steps", "1.0000", "1.0000"] in rows
    assert ["step", "1", "0.5000", "0.5000"] in rows


def test_refusals_are_one_line(tmp_path):
    run = write_run(tmp_path / "a")
    for argv, message in [
        ([run], "strop compare: expected two run directories or more, got 1"),
        ([run, "--exakt"], "--exakt: unknown flag of strop compare; did you mean --exact?"),
        (
            [run, tmp_path],
            f"{tmp_path} is not a run directory: it has no run.json; name the directory of a run, "
            f"e.g. runs/latest",
        ),
    ]:
        with pytest.raises(ConfigError) as error:
            main([str(argument) for argument in argv])
        assert str(error.value) == message
