"""One table says what every metric is; a metric that it does not hold, or reduces otherwise, is a bug."""

import pytest
from cases import case

from strop.telemetry.catalogue import catalogue, checked, declared
from strop.telemetry.declared import KINDS
from strop.telemetry.metrics import Max, Mean, Sum


def test_every_metric_is_declared_once():
    names = [metric.name for metric in catalogue()]
    assert len(names) == len(set(names))


def test_what_is_divided_names_its_denominator():
    divided = [metric for metric in catalogue() if metric.reduction in ("mean", "rate", "groups")]
    assert [metric.name for metric in divided if not metric.denominator] == []


def test_every_reduction_is_used():
    assert {metric.reduction for metric in catalogue()} == set(KINDS)


def test_a_name_is_found_by_its_pattern():
    cases = [
        ("reward/mean", "reward/mean"),
        ("reward/score/format", "reward/score/<name>"),
        ("rollout/pass_at_16", "rollout/pass_at_<k>"),
        ("eval/numbers/pass_at_4", "eval/<name>/pass_at_<k>"),
    ]
    for name, found in cases:
        with case(name):
            metric = declared(name)
            assert metric is not None
            assert metric.name == found


def test_a_name_that_nobody_declared_is_not_found():
    cases = ["reward/meen", "reward/mean/x", "rollout/dropped", "reward"]
    for name in cases:
        assert declared(name) is None, name


def test_an_undeclared_metric_is_a_bug():
    with pytest.raises(AssertionError, match="metric 'reward/meen' is not in the catalogue"):
        checked({"reward/meen": Mean(1, 1)})


def test_a_metric_that_is_reduced_otherwise_than_declared_is_a_bug():
    checked({"rollout/samples": Sum(1)})
    with pytest.raises(AssertionError, match="is no Sum"):
        checked({"rollout/samples": Max(1)})
