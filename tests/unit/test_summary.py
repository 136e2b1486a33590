"""The record of a step and the totals of a run, in worked numbers."""

import json
from collections import Counter

import pytest

from strop.rollout.group import new_group
from strop.rollout.report import Report
from strop.sample import Prompt, Status, Tokens
from strop.summary import Totals, step_record
from strop.telemetry.catalogue import declared
from strop.telemetry.groups import cells_of
from strop.telemetry.metrics import Mean, is_timing

TRAIN = {"train/tokens": 120.0, "train/loss": 0.5}
SPLIT = {"train": 4.0, "sync": 0.5, "step": 6.0}


def groups_of(*rewards):
    """One group a tuple of rewards; replies of 3 tokens to prompts of 2."""
    groups = []
    for i, of_group in enumerate(rewards):
        prompt = Prompt(id=str(i), messages="?")
        group = new_group(i, prompt, first_index=i * len(of_group), size=len(of_group))
        for sample, reward in zip(group.samples, of_group, strict=True):
            sample.sequence = Tokens.context([1, 2]) + Tokens.drawn([3, 4, 5], [-1.0] * 3, [7] * 3)
            sample.prompt_length, sample.status, sample.reward = 2, Status.COMPLETED, reward
        groups.append(group)
    return groups


def report_of(*finished, **keys):
    """`finished`: the rewards of each group, dropped ones included."""
    cells = cells_of(groups_of(*finished))
    return Report(**{"rounds": 2, "issued": 7, "cells": cells, "num_tokens": 84, "seconds": 2.0, **keys})


def record_of(*, report=None, train=TRAIN, split=SPLIT):
    return step_record(8, groups_of((1.0, 0.0), (0.5, 0.5)), report or report_of(), train, split)


def test_a_step_trains_on_the_version_of_its_number():
    record = record_of()
    assert (record["step"], record["version"]) == (8, 8)
    assert record["rollout/staleness"] == 1


def test_a_step_records_what_its_groups_say():
    record = record_of()
    assert record["reward/mean"] == 0.5
    assert record["rollout/response_tokens"] == 3


def test_every_number_of_a_step_is_declared():
    record = record_of(
        report=report_of(dropped=Counter({"all rewards equal: 0": 2}), cells={(0, 0): Mean(0.5, 1)})
    )
    assert [name for name in record if declared(name) is None] == ["step", "version"]


def test_a_step_tells_pass_at_k_for_powers_of_two_up_to_its_samples():
    kept, dropped = (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    record = step_record(8, groups_of(kept), report_of(kept, dropped), TRAIN, SPLIT)
    told = {name: value for name, value in record.items() if "pass_at" in name}
    # one of three passes: 1/3, 2/3, 1; then half of it, as no sample of the other prompt does
    assert told == pytest.approx(
        {"rollout/pass_at_1": 1 / 6, "rollout/pass_at_2": 1 / 3, "rollout/pass_at_3": 1 / 2}
    )


def test_speeds_are_tokens_over_the_seconds_of_their_station():
    record = record_of()
    assert record["rollout/tokens_per_s"] == 84 / 2
    assert record["train/tokens_per_s"] == 120 / 4
    times = {name: record[f"time/{name}_s"] for name in ("rollout", "train", "sync", "step")}
    assert times == {"rollout": 2.0, "train": 4.0, "sync": 0.5, "step": 6.0}


def test_what_cannot_be_told_is_null():
    cases = [
        ({"report": report_of(seconds=0.0)}, "rollout/tokens_per_s"),
        ({"split": {}}, "train/tokens_per_s"),
        ({"split": {"train": 0.0}}, "train/tokens_per_s"),
        ({"report": report_of()}, "rollout/reward_before_filter"),
    ]
    for keys, name in cases:
        assert record_of(**keys)[name] is None, keys


def test_accuracy_before_the_filter_is_beside_that_of_the_kept():
    record = record_of(report=report_of((1.0, 0.0), (0.0, 0.0)))
    assert (record["rollout/reward_before_filter"], record["reward/mean"]) == (0.25, 0.5)


def test_dropped_groups_are_counted_by_kind_of_reason():
    dropped = Counter(
        {
            "all rewards equal: 0": 2,
            "all rewards equal: 1": 1,
            "surplus": 1,
            "failed: reward x: timed out": 1,
        }
    )
    record = record_of(report=report_of(dropped=dropped))
    kinds = {name: n for name, n in record.items() if name.startswith("rollout/dropped/")}
    assert kinds == {
        "rollout/dropped/all_rewards_equal": 3,
        "rollout/dropped/surplus": 1,
        "rollout/dropped/failed": 1,
    }
    assert (record["rollout/groups_dropped"], record["rollout/groups_issued"]) == (5, 7)


def test_what_two_equal_runs_may_differ_in_is_named_as_time_or_speed():
    first = record_of()
    slower = record_of(report=report_of(seconds=3.0), split={name: 2 * s for name, s in SPLIT.items()})
    differ = {name for name, value in first.items() if slower[name] != value}
    assert len(differ) == 6
    assert all(is_timing(name) for name in differ)


def test_the_record_is_json():
    assert json.loads(json.dumps(record_of(), allow_nan=False)) == record_of()


def totals():
    total = Totals(wall_s=3.0, evals={"digits": {"start": {"mean": 0.1}}})
    total.add(record_of())
    total.add(record_of(report=report_of(num_tokens=16, seconds=3.0), train={"train/tokens": 40.0}))
    return total


def test_speeds_of_a_run_are_all_tokens_over_all_seconds():
    # 84 tokens in 2 s and 16 in 3 s are 20 a second, not the mean of 42 and 5.3
    assert (totals().rollout_tokens_per_s, totals().train_tokens_per_s) == (20, 20)


def test_speeds_of_a_run_without_steps_are_null():
    assert (Totals().rollout_tokens_per_s, Totals().train_tokens_per_s) == (None, None)


def test_totals_come_back_from_a_checkpoint_as_they_were():
    again = Totals(**json.loads(json.dumps(totals().as_json())))
    assert again == totals()


def test_evaluations_of_two_runs_are_not_shared():
    one = Totals()
    one.evals["digits"] = {"start": {}}
    assert Totals().evals == {}
