"""`strop doctor mine.py:name` for an advantage or a policy loss: every way of breaking its contract."""

import re

import pytest

from strop.doctor.functions import function_findings
from strop.finding import Level

MINE = """
import itertools, numpy as np, torch
counter = itertools.count()
def good(batch): return batch.spread(batch.rewards)
def short(batch): return batch.rewards
def nan(batch): return batch.spread(batch.rewards / 0)
def drifting(batch): return batch.spread(batch.rewards + next(counter))
def raising(batch): return batch.reward
def plain(inputs): return -inputs.advantage_N * (inputs.logp_N - inputs.old_N).exp()
def sequence(inputs): return -inputs.advantage_N * (inputs.logp_N - inputs.sums(inputs.logp_N)).exp()
def batch_mean(inputs): return -inputs.advantage_N * (inputs.logp_N - inputs.logp_N.mean())
def numb(inputs): return -inputs.advantage_N * inputs.old_N
def one(inputs): return (-inputs.advantage_N * inputs.logp_N).sum()
def changing(inputs):
    inputs.advantage_N.mul_(2)
    return -inputs.advantage_N * inputs.logp_N
def log_zero(inputs): return (inputs.logp_N * 0).log()
"""


@pytest.fixture
def findings(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)

    def of(name):
        return list(function_findings(f"{tmp_path}/mine.py:{name}", seam=None, options=None, label=None))

    return of


def test_a_good_one_passes(findings):
    for name in ("good", "plain", "sequence"):
        found = findings(name)
        assert len(found) > 2, name
        assert {finding.level for finding in found} == {Level.OK}, name


WRONG = (
    ("short", Level.FAIL, "response tokens|advantages, got"),
    ("nan", Level.FAIL, "inf|nan"),
    ("drifting", Level.WARN, "second time"),
    ("raising", Level.FAIL, "no attribute 'reward'"),
    ("batch_mean", Level.FAIL, "depends on the others"),
    ("numb", Level.FAIL, "no gradient"),
    ("one", Level.FAIL, "losses, got"),
    ("changing", Level.FAIL, "changed inputs.advantage_N"),
    ("log_zero", Level.FAIL, "not finite"),
)


def test_what_is_wrong_is_said(findings):
    for name, level, told in WRONG:
        found = [finding for finding in findings(name) if finding.level is level]
        assert any(re.search(told, finding.text) for finding in found), (name, found)
