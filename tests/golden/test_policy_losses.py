"""Hand-worked numbers of KL estimators and policy losses; a row's id begins with its formula's section.

2.1 KL, 2.2 PPO clip and dual clip, 2.6 GSPO, 2.7 CISPO, 2.8 overlong punishment. All to 1e-6.
"""

import numpy as np
import pytest
import torch

from strop.algo.kl import estimate_kl, exact_kl, jensen_shannon, kl_values
from strop.algo.losses import cispo, clipped_surrogate, gspo, gspo_token
from strop.algo.overlong import lower_truncated, soft_overlong_punishment
from strop.algo.sequence import sums_by_sample


def column(values, **options):
    return torch.tensor(values, dtype=torch.float64, **options)


def rows(*table):
    return [pytest.param(*values, id=name) for name, *values in table]


@pytest.mark.parametrize(
    ("kind", "log_ratio", "value", "gradient"),
    rows(
        ("2.1-k1", "k1", 0.5, 0.5, 1.0),
        ("2.1-k2", "k2", 0.5, 0.125, 0.5),
        ("2.1-k3", "k3", 0.5, 0.10653066, 0.39346934),
        ("2.1-low_var_kl", "low_var_kl", 0.5, 0.10653066, 0.39346934),
        ("2.1-k3+", "k3+", 0.5, 0.10653066, 0.5),
        ("2.1-k3-far", "k3", -3.0, 16.08553692, -19.08553692),
        ("2.1-low_var_kl-clamped", "low_var_kl", -3.0, 10.0, 0.0),
        ("2.1-k3+-far", "k3+", -3.0, 16.08553692, -3.0),
        ("2.1-k1-equal", "k1", 0.0, 0.0, 1.0),
        ("2.1-k2-equal", "k2", 0.0, 0.0, 0.0),
        ("2.1-k3-equal", "k3", 0.0, 0.0, 0.0),
        ("2.1-k3+-equal", "k3+", 0.0, 0.0, 0.0),
    ),
)
def test_kl_estimate_and_its_gradient(kind, log_ratio, value, gradient):
    logp = column([-1.0], requires_grad=True)
    kl = estimate_kl(logp, logp.detach() - log_ratio, kind=kind)
    kl.sum().backward()
    assert (kl.item(), logp.grad.item()) == pytest.approx((value, gradient), abs=1e-6)
    assert kl_values(np.array([-1.0]), np.array([-1.0 - log_ratio]), kind=kind) == pytest.approx(
        value, abs=1e-6
    )


@pytest.mark.parametrize(
    ("kind", "value", "gradient"),
    rows(
        ("2.1-unbiased-k3", "k3", 0.13011684, 0.61070138),  # the gradient is w · d
        ("2.1-unbiased-low_var_kl", "low_var_kl", 0.13011684, 0.61070138),
        ("2.1-unbiased-k1", "k1", 0.61070138, 1.83210414),  # w · (d + 1)
    ),
)
def test_unbiased_kl_weighs_by_the_ratio_with_its_gradient(kind, value, gradient):
    logp = column([-1.0], requires_grad=True)
    kl = estimate_kl(logp, column([-1.5]), kind=kind, old_N=column([-1.2]))
    kl.sum().backward()
    assert (kl.item(), logp.grad.item()) == pytest.approx((value, gradient), abs=1e-6)


P, Q = [0.5, 0.3, 0.2], [0.6, 0.3, 0.1]


@pytest.mark.parametrize(
    ("kl", "value"),
    rows(
        ("2.1-exact-KL(p‖q)", lambda p, q: exact_kl(p, q), 0.04746866),
        ("2.1-exact-KL(q‖p)", lambda p, q: exact_kl(q, p), 0.04007822),
        ("2.1-exact-JSD", jensen_shannon, 0.01077082),
        ("2.1-mean-of-k1", lambda p, q: (p.exp() * estimate_kl(p, q, kind="k1")).sum(-1), 0.04746866),
        ("2.1-mean-of-k3", lambda p, q: (p.exp() * estimate_kl(p, q, kind="k3")).sum(-1), 0.04746866),
    ),
)
def test_exact_kl_over_the_vocabulary(kl, value):
    assert kl(column([P]).log(), column([Q]).log()).tolist() == pytest.approx([value], abs=1e-6)


@pytest.mark.parametrize(
    ("logp", "ref", "value"), rows(("2.1-slime", [0.5, 0.7, 0.9], [0.4, 0.5, 0.6], [0.1, 0.2, 0.3]))
)
def test_k1_of_three_tokens(logp, ref, value):
    assert estimate_kl(column(logp), column(ref), kind="k1").tolist() == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("dual", [False, True], ids=["plain", "dual"])
@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient", "dual_loss", "dual_gradient"),
    rows(
        ("2.2-row1", 1.5, 1, -1.28, 0, -1.28, 0),
        ("2.2-row2", 1.5, -1, 1.5, 1.5, 1.5, 1.5),
        ("2.2-row3", 0.5, 1, -0.5, -0.5, -0.5, -0.5),
        ("2.2-row4", 0.5, -1, 0.8, 0, 0.8, 0),
        ("2.2-row5", 5.0, -1, 5.0, 5.0, 3.0, 0),
        ("2.2-on-policy+", 1.0, 1, -1.0, -1.0, -1.0, -1.0),
        ("2.2-on-policy-", 1.0, -1, 1.0, 1.0, 1.0, 1.0),
        ("2.2-inside", 1.1, 2, -2.2, -2.2, -2.2, -2.2),
        ("2.2-no-advantage", 1.0, 0, 0, 0, 0, 0),
    ),
)
def test_clipped_surrogate_and_its_gradient(ratio, advantage, loss, gradient, dual_loss, dual_gradient, dual):
    logp = column([ratio]).log().requires_grad_()
    found = clipped_surrogate(
        logp,
        column([0.0]),
        advantage_N=column([advantage]),
        clip_low=0.2,
        clip_high=0.28,
        dual_clip=3.0 if dual else None,
    ).loss_N
    found.sum().backward()
    expected = (dual_loss, dual_gradient) if dual else (loss, gradient)
    assert (found.item(), logp.grad.item()) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("ratios", "advantages", "losses", "clipped"),
    rows(("2.2-slime", [2.0, 2.0, 0.5], [2.0, -2.0, 2.0], [-2.4, 3.0, -1.0], [True, False, False])),
)
def test_dual_clip_of_three_ratios(ratios, advantages, losses, clipped):
    found = clipped_surrogate(
        column(ratios).log(),
        column([0.0] * 3),
        advantage_N=column(advantages),
        clip_low=0.2,
        clip_high=0.2,
        dual_clip=1.5,
    )
    assert found.loss_N.tolist() == pytest.approx(losses, abs=1e-6)
    assert (found.clipped_low_N | found.clipped_high_N).tolist() == clipped


GSPO_CLIPS = {"clip_low": 3e-4, "clip_high": 4e-4}


@pytest.mark.parametrize("form", [gspo, gspo_token])
@pytest.mark.parametrize(
    ("log_ratios", "advantage", "value", "gradient"),
    rows(
        ("2.6-positive", [0.1, -0.2, 0.4], 1, -1.0004, 0.0),
        ("2.6-negative", [0.1, -0.2, 0.4], -1, 1.10517092, 0.36839031),
        ("2.6-low", [-0.1, 0.2, -0.4], -1, 0.9997, 0.0),
        ("2.6-on-policy", [0.0, 0.0, 0.0], 1, -1.0, -1 / 3),
    ),
)
def test_gspo_of_one_sample_and_its_gradient(form, log_ratios, advantage, value, gradient):
    logp = column(log_ratios, requires_grad=True)
    losses = form(
        logp,
        torch.zeros_like(logp),
        advantage_N=column([advantage] * 3),
        mask_N=torch.ones(3, dtype=torch.bool),
        sums=sums_by_sample(torch.zeros(3, dtype=torch.int64)),
        **GSPO_CLIPS,
    ).loss_N
    losses.mean().backward()
    assert losses.tolist() == pytest.approx([value] * 3, abs=1e-6)
    assert logp.grad.tolist() == pytest.approx([gradient] * 3, abs=1e-6)


@pytest.mark.parametrize(
    ("clips", "logp", "old", "losses", "weights"),
    rows(
        (
            "2.7-canonical",
            {"clip_high": 0.28},
            [-0.5, -1.0, -2.0],
            [-0.7, -0.9, -3.0],
            [0.6107014, 0.9048374, 2.56],
            [1.2214028, 0.9048374, 1.28],
        ),
        (
            "2.7-slime-0.2-0.28",
            {"clip_low": 0.2, "clip_high": 0.28},
            [-2.0] * 4,
            (-2 - np.log([1, 1.14, 1.56, 0.4])).tolist(),
            [2, 2.28, 2.56, 1.6],
            [1, 1.14, 1.28, 0.8],
        ),
        (
            "2.7-slime-1-4",
            {"clip_low": 1.0, "clip_high": 4.0},
            [-2.0] * 4,
            (-2 - np.log([1, 3, 9, 0.4])).tolist(),
            [2, 6, 10, 0.8],
            [1, 3, 5, 0.4],
        ),
    ),
)
@pytest.mark.parametrize("advantage", [1.0, -2.0])
def test_cispo_and_its_gradient(clips, logp, old, losses, weights, advantage):
    logp = column(logp, requires_grad=True)
    found = cispo(logp, column(old), advantage_N=torch.full_like(logp, advantage), **clips).loss_N
    found.sum().backward()
    assert found.tolist() == pytest.approx([advantage * loss for loss in losses], abs=1e-6)
    assert logp.grad.tolist() == pytest.approx([-advantage * weight for weight in weights], abs=1e-6)


@pytest.mark.parametrize(
    ("length", "value"),
    rows(
        ("2.8-16384", 16384, 0.0),
        ("2.8-18432", 18432, -0.5),
        ("2.8-20480", 20480, -1.0),
        ("2.8-1", 1, 0.0),
        ("2.8-beyond", 30000, -1.0),
    ),
)
def test_soft_overlong_punishment(length, value):
    assert soft_overlong_punishment(np.array([length]), limit=20480, cache=4096).tolist() == [value]


@pytest.mark.parametrize(
    ("coef", "value"),
    rows(("2.8-prorl-scaled", 0.25, [0.25, 1.0, 0.0]), ("2.8-prorl-fixed", -0.5, [-0.5, 1.0, -0.5])),
)
def test_rewards_of_truncated_samples_are_lowered(coef, value):
    lowered = lower_truncated(np.array([1.0, 1.0, 0.0]), np.array([True, False, True]), coef=coef)
    assert lowered.tolist() == value
