"""Hand-worked numbers of off-policy corrections; the id of a row begins with the section of its formula.

2.9 TIS, IcePop, MIS, rejection, veto; 2.10 OPSM; 2.11 decoupled PPO. All to 1e-6.
"""

import math

import pytest
import torch

from strop.algo.correction import Rules, Weighting, Window, correct, mean_of_weights
from strop.algo.losses import clipped_surrogate
from strop.algo.opsm import masked_off_policy
from strop.algo.sequence import sums_by_sample


def column(values, **options):
    return torch.tensor(values, dtype=torch.float64, **options)


def rows(*table):
    return [pytest.param(*values, id=name) for name, *values in table]


def one_sample(n):
    return {
        "mask_N": torch.ones(n, dtype=torch.bool),
        "sums": sums_by_sample(torch.zeros(n, dtype=torch.int64)),
    }


OLD, BEHAVIOR = [-1.0, -0.2, -3.0], [-1.1, -1.5, -2.0]
W = [1.1051709, 3.6692967, 0.3678794]
SEQUENCE, GEOMETRIC = math.exp(0.4), math.exp(0.4 / 3)


def weigh(level, mode, low, high):
    return Rules(Weighting(Window(level, low, high), mode))


@pytest.mark.parametrize(
    ("rules", "weights"),
    rows(
        ("2.9-w", weigh("token", "truncate", 0, math.inf), W),
        ("2.9-TIS-truncate", weigh("token", "truncate", 0, 2), [W[0], 2, W[2]]),
        ("2.9-TIS-clip", weigh("token", "clip", 0, 2), [W[0], 2, W[2]]),
        ("2.9-clip-both", weigh("token", "clip", 0.5, 2), [W[0], 2, 0.5]),
        ("2.9-truncate-has-no-low", weigh("token", "truncate", 0.5, 2), [W[0], 2, W[2]]),
        ("2.9-IcePop-0.5-5", weigh("token", "mask", 0.5, 5), [W[0], W[1], 0]),
        ("2.9-IcePop-0.5-2", weigh("token", "mask", 0.5, 2), [W[0], 0, 0]),
        ("2.9-level-sequence", weigh("sequence", "truncate", 0, 2), [1.4918247] * 3),
        ("2.9-level-geometric", weigh("geometric", "truncate", 0, 2), [1.1426308] * 3),
        ("2.9-MIS-sequence-truncate", weigh("sequence", "truncate", 0, 1.2), [1.2] * 3),
        ("2.9-MIS-sequence-clip", weigh("sequence", "clip", 1.6, 2), [1.6] * 3),
        ("2.9-MIS-sequence-mask-in", weigh("sequence", "mask", 0.5, 2), [1.4918247] * 3),
        ("2.9-MIS-sequence-mask-out", weigh("sequence", "mask", 0.5, 1.2), [0] * 3),
        ("2.9-MIS-geometric-truncate", weigh("geometric", "truncate", 0, 1.1), [1.1] * 3),
        ("2.9-MIS-geometric-clip", weigh("geometric", "clip", 1.2, 2), [1.2] * 3),
        ("2.9-MIS-geometric-mask-in", weigh("geometric", "mask", 0.5, 1.2), [1.1426308] * 3),
        ("2.9-MIS-geometric-mask-out", weigh("geometric", "mask", 0.5, 1.1), [0] * 3),
        ("2.9-RS-token", Rules(rejection=Window("token", 0.5, 2)), [1, 0, 0]),
        ("2.9-RS-sequence-in", Rules(rejection=Window("sequence", 0.5, 2)), [1] * 3),
        ("2.9-RS-sequence-out", Rules(rejection=Window("sequence", 0.5, 1.2)), [0] * 3),
        ("2.9-RS-geometric-in", Rules(rejection=Window("geometric", 0.5, 1.2)), [1] * 3),
        ("2.9-RS-geometric-out", Rules(rejection=Window("geometric", 0.5, 1.1)), [0] * 3),
        ("2.9-veto-none", Rules(veto=1e-4), [1] * 3),
        ("2.9-veto-all", Rules(veto=0.37), [0] * 3),
        (
            "2.9-seq-mask-tis-in",
            Rules(Weighting(Window("token", 0, 2), "truncate"), rejection=Window("geometric", 0.5, 1.2)),
            [W[0], 2, W[2]],
        ),
        (
            "2.9-seq-mask-tis-out",
            Rules(Weighting(Window("token", 0, 2), "truncate"), rejection=Window("geometric", 0.5, 1.1)),
            [0] * 3,
        ),
        ("2.9-none", Rules(), [1] * 3),
    ),
)
def test_weights_of_three_tokens(rules, weights):
    found = correct(column(OLD), column(BEHAVIOR), rules=rules, **one_sample(3)).weight_N
    assert found.tolist() == pytest.approx(weights, abs=1e-6)


@pytest.mark.parametrize(
    ("rules", "clipped", "rejected"),
    rows(
        ("2.9-TIS", weigh("token", "truncate", 0, 2), [False, True, False], [False] * 3),
        ("2.9-clip", weigh("token", "clip", 0.5, 2), [False, True, True], [False] * 3),
        ("2.9-IcePop", weigh("token", "mask", 0.5, 2), [False] * 3, [False, True, True]),
        ("2.9-RS", Rules(rejection=Window("sequence", 0.5, 1.2)), [False] * 3, [True] * 3),
    ),
)
def test_clipped_and_rejected_tokens_are_told_apart(rules, clipped, rejected):
    found = correct(column(OLD), column(BEHAVIOR), rules=rules, **one_sample(3))
    assert (found.clipped_N.tolist(), found.rejected_N.tolist()) == (clipped, rejected)


NORMALISED = [w / (sum(W) / 3) for w in W]


@pytest.mark.parametrize(
    ("level", "mode", "window", "mean", "weights"),
    rows(
        ("2.9-normalised-token", "token", "truncate", (0, math.inf), sum(W) / 3, NORMALISED),
        (
            "2.9-normalised-TIS",
            "token",
            "truncate",
            (0, 2),
            (W[0] + 2 + W[2]) / 3,
            [0.9546400, 1.7275880, 0.3177720],
        ),
        ("2.9-normalised-IcePop", "token", "mask", (0.5, 2), W[0] / 3, [3, 0, 0]),
        ("2.9-normalised-geometric", "geometric", "truncate", (0, 2), GEOMETRIC, [1, 1, 1]),
        ("2.9-normalised-sequence", "sequence", "truncate", (0, 2), SEQUENCE, [1, 1, 1]),
        ("2.9-normalised-nothing-left", "token", "mask", (8, 9), 0, [0, 0, 0]),
    ),
)
def test_normalised_weights_are_divided_by_their_mean(level, mode, window, mean, weights):
    """slime's geometric level with normalisation raised ValueError."""
    weighting, where = Weighting(Window(level, *window), mode), one_sample(3)
    found = mean_of_weights(column(OLD), column(BEHAVIOR), weighting=weighting, **where)
    assert found == pytest.approx(mean, abs=1e-6)
    result = correct(
        column(OLD), column(BEHAVIOR), rules=Rules(weighting), mean_weight=found, **where
    ).weight_N
    assert result.tolist() == pytest.approx(weights, abs=1e-6)


@pytest.mark.parametrize(
    ("difference", "weight"),
    rows(("2.9-safety-high", 1e4, math.exp(20)), ("2.9-safety-low", -1e4, math.exp(-20))),
)
@pytest.mark.parametrize("level", ["token", "sequence", "geometric"])
def test_log_ratios_are_clamped_before_exp(level, difference, weight):
    rules = weigh(level, "truncate", 0, math.inf)
    found = correct(column([difference]), column([0.0]), rules=rules, **one_sample(1)).weight_N
    assert found.tolist() == pytest.approx([weight], rel=1e-9)


@pytest.mark.parametrize(
    ("advantage", "delta", "masked"),
    rows(("2.10-masked", -1, 0.1, True), ("2.10-good", 1, 0.1, False), ("2.10-near", -1, 0.2, False)),
)
def test_off_policy_samples_that_were_bad_are_masked(advantage, delta, masked):
    found = masked_off_policy(
        column([-1.2, -2.3, -0.4]),
        column([-1.0, -2.0, -0.5]),
        advantage_N=column([advantage] * 3),
        delta=delta,
        **one_sample(3),
    )
    assert found.tolist() == [masked] * 3


@pytest.mark.parametrize(
    ("excess", "masked"), rows(("2.10-K-below", 1e-6, False), ("2.10-K-above", -1e-6, True))
)
def test_divergence_of_a_sample_is_the_mean_of_its_tokens(excess, masked):
    found = masked_off_policy(
        column([-1.2, -2.3, -0.4]),
        column([-1.0, -2.0, -0.5]),
        advantage_N=column([-1.0] * 3),
        delta=0.1333333333 + excess,
        **one_sample(3),
    )
    assert found.tolist() == [masked] * 3


def test_2_10_the_first_update_masks_nothing():
    logp = column([-1.0, -2.0, -0.5])
    found = masked_off_policy(logp, logp, advantage_N=column([-1.0] * 3), delta=0.0, **one_sample(3))
    assert not found.any()


CLIPS = {"clip_low": 0.2, "clip_high": 0.2, "dual_clip": None}


@pytest.mark.parametrize(
    ("advantage", "loss", "gradient", "coupled"),
    rows(
        ("2.11-positive", 1, -1.46568331, 0.0, -1.2),
        ("2.11-negative", -1, 1.64872127, 1.64872127, 1.64872127),
    ),
)
def test_decoupled_ppo_and_its_gradient(advantage, loss, gradient, coupled):
    logp, prox, behavior = column([-1.5], requires_grad=True), column([-1.8]), column([-2.0])
    options = {"advantage_N": column([advantage]), **CLIPS}
    weight = correct(prox, behavior, rules=weigh("token", "truncate", 0, math.inf), **one_sample(1)).weight_N
    found = weight * clipped_surrogate(logp, prox, **options).loss_N
    found.sum().backward()
    assert (found.item(), logp.grad.item()) == pytest.approx((loss, gradient), abs=1e-6)
    assert clipped_surrogate(logp, behavior, **options).loss_N.item() == pytest.approx(coupled, abs=1e-6)
