"""Off-policy corrections and sequence masking beyond their tables in tests/golden."""

import math
import re
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.algo.correction import Rules, Weighting, Window, correct, mean_of_weights
from strop.algo.losses import clipped_surrogate
from strop.algo.opsm import masked_off_policy
from strop.algo.overlong import lower_truncated, soft_overlong_punishment, without_truncated
from strop.algo.sequence import sums_by_sample
from strop.errors import NonFinite
from strop.train.mismatch import mismatch_metrics

LEVELS, MODES = ("token", "sequence", "geometric"), ("truncate", "clip", "mask")
ALL_RULES = [
    *(Rules(Weighting(Window(level, 0.5, 2.0), mode)) for level in LEVELS for mode in MODES),
    *(Rules(rejection=Window(level, 0.5, 2.0)) for level in LEVELS),
    Rules(veto=0.5),
    Rules(Weighting(Window("token", 0.0, 2.0), "truncate"), Window("geometric", 0.8, 1.2), veto=0.1),
]
SAMPLE = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])
MASK = torch.tensor([1, 0, 1, 1, 1, 0, 0, 0], dtype=torch.bool)
WHERE = {"mask_N": MASK, "sums": sums_by_sample(SAMPLE)}
OLD = torch.tensor([-1.0, -9.0, -2.0, -0.5, -4.0, -1.0, -1.0, -1.0])
BEHAVIOR = torch.tensor([-1.2, -2.0, -1.9, -2.5, -3.0, -5.0, -0.1, -1.0])


def columns_of(found):
    return [found.weight_N.tolist(), found.clipped_N.tolist(), found.rejected_N.tolist()]


def test_what_is_not_trained_changes_no_correction():
    for case in product(ALL_RULES, [torch.nan, torch.inf, -torch.inf]):
        rules, bad = case
        old, behavior = OLD.where(MASK, bad), BEHAVIOR.where(MASK, bad)
        found = correct(old, behavior, rules=rules, **WHERE)
        assert columns_of(found) == columns_of(correct(OLD, BEHAVIOR, rules=rules, **WHERE)), case
        assert found.weight_N[~MASK].tolist() == [1] * 4, case
        assert not (found.clipped_N | found.rejected_N)[~MASK].any(), case


def refusal(behavior, rules):
    try:
        correct(OLD, behavior, rules=rules, **WHERE)
    except NonFinite as error:
        return str(error)
    return "nothing was said"


def test_a_trained_token_without_a_sampled_log_prob_is_named():
    """A comparison with NaN is false: such a token would have passed every window."""
    said = r"behavior log-prob of 1 of 4 trained tokens is not finite .*token 3 of"
    for case in product(ALL_RULES, [torch.nan, -torch.inf]):
        rules, bad = case
        behavior = BEHAVIOR.clone()
        behavior[3] = bad
        assert re.search(said, refusal(behavior, rules)), case


def test_nan_of_the_trainer_is_never_hidden_by_a_correction():
    old = OLD.clone()
    old[0] = torch.nan
    loss_N = clipped_surrogate(
        old, old, advantage_N=torch.ones(8), clip_low=0.2, clip_high=0.2, dual_clip=None
    ).loss_N
    for rules in ALL_RULES:
        weight_N = correct(old, BEHAVIOR, rules=rules, **WHERE).weight_N
        assert (weight_N * loss_N)[MASK].sum().isnan(), rules


def test_a_correction_has_no_gradient():
    old = OLD.clone().requires_grad_()
    for rules in ALL_RULES:
        assert not correct(old, BEHAVIOR, rules=rules, **WHERE).weight_N.requires_grad, rules


def test_equal_policies_have_weights_of_exactly_one():
    for rules in ALL_RULES:
        found = columns_of(correct(OLD, OLD, rules=rules, **WHERE))
        assert found == [[1] * 8, [False] * 8, [False] * 8], rules


@settings(max_examples=20, deadline=None)
@given(
    tokens=st.lists(
        st.tuples(st.integers(0, 3), st.booleans(), st.floats(-4, 4), st.floats(-2, 2)),
        min_size=1,
        max_size=20,
    ),
    which=st.sampled_from(ALL_RULES),
)
def test_correction_does_not_depend_on_the_split_into_microbatches(tokens, which):
    sample, mask, old, gap = (torch.tensor(column) for column in zip(*tokens, strict=True))
    old, behavior = old.double(), old.double() - gap.double()

    def corrected(rows):
        sums = sums_by_sample(sample[rows])
        return correct(old[rows], behavior[rows], rules=which, mask_N=mask[rows], sums=sums)

    whole = corrected(torch.arange(len(sample)))
    for one in sample.unique():
        rows = (sample == one).nonzero().flatten()
        part = corrected(rows)
        assert torch.equal(part.weight_N, whole.weight_N[rows])
        assert torch.equal(part.rejected_N, whole.rejected_N[rows])


def test_a_veto_drops_the_sample_and_no_other():
    found = correct(OLD, BEHAVIOR, rules=Rules(veto=0.5), **WHERE)
    assert found.rejected_N.tolist() == [False, False, False, True, True, False, False, False]


@pytest.mark.parametrize(
    "rules",
    [
        Rules(veto=0.5),
        Rules(rejection=Window("sequence", 0.5, 2.0)),
        Rules(rejection=Window("geometric", 0.5, 2.0)),
    ],
    ids=str,
)
def test_tool_tokens_of_a_rejected_sample_are_not_counted_as_rejected(rules):
    mask = torch.tensor([True, False, True])
    found = correct(
        torch.tensor([-9.0, 0.0, -9.0]),
        torch.full((3,), -1.0),
        rules=rules,
        mask_N=mask,
        sums=sums_by_sample(torch.zeros(3, dtype=torch.int64)),
    )
    assert (found.rejected_N.tolist(), found.weight_N.tolist()) == ([True, False, True], [0, 1, 0])


def test_a_token_outside_of_the_window_is_rejected_alone():
    found = correct(OLD, BEHAVIOR, rules=Rules(rejection=Window("token", 0.5, 2.0)), **WHERE)
    assert found.rejected_N.tolist() == [False, False, False, True, True, False, False, False]
    assert found.weight_N.tolist() == [1, 1, 1, 0, 0, 1, 1, 1]


def test_kept_tokens_do_not_weigh_more_when_others_are_rejected():
    """slime's MIS example divided by what was left."""
    rules = Rules(rejection=Window("token", 0.5, 2.0))
    weights = MASK.float() / MASK.sum()
    loss = weights * correct(OLD, BEHAVIOR, rules=rules, **WHERE).weight_N
    assert loss.sum().item() == 0.5  # two of the four


def test_mean_weight_leaves_rejection_and_veto_out():
    weighting = Weighting(Window("token", 0.0, 2.0), "truncate")
    mean = mean_of_weights(OLD, BEHAVIOR, weighting=weighting, **WHERE)
    expected = (math.exp(0.2) + math.exp(-0.1) + 2 + math.exp(-1)) / 4
    assert mean == pytest.approx(expected, rel=1e-6)
    rules = Rules(weighting, rejection=Window("token", 0.5, 2.0))
    found = correct(OLD, BEHAVIOR, rules=rules, mean_weight=mean, **WHERE).weight_N
    assert found[MASK].tolist() == pytest.approx(
        [math.exp(0.2) / expected, math.exp(-0.1) / expected, 0, 0], rel=1e-6
    )


def test_mean_weight_of_nothing_trained_is_zero():
    nothing = {"mask_N": torch.zeros(8, dtype=torch.bool), "sums": WHERE["sums"]}
    assert mean_of_weights(OLD, BEHAVIOR, weighting=Weighting(Window("token", 0, 2), "mask"), **nothing) == 0


def test_tokens_of_good_advantage_in_a_masked_sample_are_trained():
    advantage = torch.tensor([-1.0, -1, 1, -1, -1, -1, -1, -1])
    logp = BEHAVIOR - torch.tensor([1.0, 1, 1, 0, 0, 0, 0, 0])
    found = masked_off_policy(logp, BEHAVIOR, advantage_N=advantage, delta=0.1, **WHERE)
    assert found.tolist() == [True] + [False] * 7


def test_sequence_masking_is_of_what_was_sampled_and_of_trained_tokens():
    """TRL#4857: fed `old`; slime counted what the loss mask leaves out, so that the share exceeded 1."""
    advantage, logp = -torch.ones(8), OLD - 1.0
    behavior = torch.where(MASK, OLD, torch.nan)
    found = masked_off_policy(logp, behavior, advantage_N=advantage, delta=0.5, **WHERE)
    assert found.tolist() == MASK.tolist()
    behavior[0] = torch.nan
    with pytest.raises(NonFinite, match="behavior log-prob of 1 of 4"):
        masked_off_policy(logp, behavior, advantage_N=advantage, delta=0.5, **WHERE)


def test_sequence_masking_has_no_gradient():
    logp = OLD.clone().requires_grad_()
    assert not masked_off_policy(logp, OLD, advantage_N=-torch.ones(8), delta=0.0, **WHERE).requires_grad


def test_mismatch_is_measured_by_its_sign_too():
    old, behavior = np.float32([-1, -0.2, -3, np.nan, -1]), np.float32([-1.1, -1.5, -2, -1, np.nan])
    metrics = mismatch_metrics(old, behavior)
    d = np.array([0.1, 1.3, -1.0])
    w = np.exp(d)
    assert metrics["train/mismatch_k1"] == pytest.approx(-d.mean(), abs=1e-6)
    assert metrics["train/mismatch_k3"] == pytest.approx((w - 1 - d).mean(), abs=1e-6)
    assert metrics["train/train_rollout_logprob_abs_diff_max"] == pytest.approx(1.3, abs=1e-6)
    assert metrics["train/mismatch_ess"] == pytest.approx(w.sum() ** 2 / (3 * (w**2).sum()), abs=1e-6)


def test_equal_policies_have_the_whole_sample_size():
    metrics = mismatch_metrics(np.float32([-1, -2]), np.float32([-1, -2]))
    assert (metrics["train/mismatch_ess"], metrics["train/mismatch_k1"]) == (1, 0)


def test_one_huge_ratio_leaves_the_sample_size_of_one_token():
    metrics = mismatch_metrics(np.float32([0, -1, -1, -1]), np.float32([-1e6, -1, -1, -1]))
    assert metrics["train/mismatch_ess"] == pytest.approx(0.25)
    assert metrics["train/mismatch_clip_frac"] == 0.25


def test_overlong_punishment_falls_from_the_cache_on():
    lengths = np.arange(0, 13)
    found = soft_overlong_punishment(lengths, limit=10, cache=4)
    assert found.tolist() == [0] * 7 + [-0.25, -0.5, -0.75, -1, -1, -1]


def test_rewards_of_finished_samples_stay():
    rewards = np.array([1.0, -1.0])
    assert lower_truncated(rewards, np.zeros(2, bool), coef=0.0).tolist() == [1, -1]
    assert rewards.tolist() == [1, -1]


def test_truncated_samples_are_not_trained_on():
    mask = np.array([True, True, False, True])
    assert without_truncated(mask, np.array([True, False, False, False])).tolist() == [
        False,
        True,
        False,
        True,
    ]
