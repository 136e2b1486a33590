"""The clipped surrogate and the KL estimators beyond their tables in tests/golden."""

from itertools import product

import pytest
import torch

from strop.algo.kl import estimate_kl
from strop.algo.losses import clipped_surrogate
from strop.config.tree import Algo


def surrogate(ratios, advantages, *, clip_low=0.2, clip_high=0.28, dual_clip=None):
    return clipped_surrogate(
        torch.tensor(ratios).log(),
        torch.zeros(len(ratios)),
        advantage_N=torch.tensor(advantages),
        clip_low=clip_low,
        clip_high=clip_high,
        dual_clip=dual_clip,
    )


def test_clipped_tokens_are_told_apart_by_bound():
    result = surrogate([1.5, 1.5, 0.5, 0.5, 1.0], [1.0, -1.0, 1.0, -1.0, 1.0])
    assert result.clipped_high_N.tolist() == [True, False, False, False, False]
    assert result.clipped_low_N.tolist() == [False, False, False, True, False]


def test_zero_advantage_is_never_counted_as_clipped():
    result = surrogate([9.0, 0.1], [0.0, 0.0])
    assert not (result.clipped_low_N | result.clipped_high_N).any()


def test_dual_clip_changes_the_loss():  # slime#2247: parsed, never passed on
    assert surrogate([5.0], [-1.0], dual_clip=3.0).loss_N != surrogate([5.0], [-1.0]).loss_N


def test_dual_clip_leaves_positive_advantages_alone():
    ratios, advantages = [0.1, 1.0, 5.0], [1.0, 1.0, 1.0]
    assert torch.equal(
        surrogate(ratios, advantages, dual_clip=1.5).loss_N, surrogate(ratios, advantages).loss_N
    )


@pytest.mark.parametrize("log_ratio", [-1e4, 1e4])
def test_extreme_log_ratio_gives_finite_loss_and_gradient(log_ratio):
    logp = torch.tensor([log_ratio], requires_grad=True)
    loss = clipped_surrogate(
        logp, torch.zeros(1), advantage_N=-torch.ones(1), clip_low=0.2, clip_high=0.2, dual_clip=None
    ).loss_N
    loss.sum().backward()
    assert torch.isfinite(loss).all()
    assert torch.isfinite(logp.grad).all()


KINDS = ("k1", "k2", "k3", "low_var_kl")


def test_extreme_log_ratio_gives_finite_kl():
    for kind, log_ratio in product(KINDS, (-1e4, 1e4)):
        kl = estimate_kl(torch.tensor([log_ratio]), torch.zeros(1), kind=kind)
        assert torch.isfinite(kl).all(), (kind, log_ratio)


def test_kl_has_a_gradient():  # SkyRL#1353: computed under no_grad
    for kind in KINDS[1:]:
        logp = torch.tensor([-1.0], requires_grad=True)
        estimate_kl(logp, torch.tensor([-1.5]), kind=kind).sum().backward()
        assert logp.grad.item() > 0, kind


def test_k3_is_not_negative_near_zero_in_float32():
    log_ratio = torch.linspace(-1e-3, 1e-3, 1001)
    kl = estimate_kl(log_ratio, torch.zeros(1001), kind="k3")
    assert kl.min() > -1e-10
    assert torch.allclose(kl.double(), log_ratio.double().square() / 2, atol=1e-9)


def test_nan_surfaces():
    for kind in KINDS:
        assert estimate_kl(torch.zeros(1), torch.tensor([torch.nan]), kind=kind).isnan().all(), kind


def test_the_default_kl_pulls_towards_the_reference():  # slime's default, k1, has no gradient on average
    def pull(kind):
        scores_V = torch.tensor([0.5, 0.0, -0.5], requires_grad=True)
        logp_V = scores_V.log_softmax(0)
        kl_V = estimate_kl(logp_V, torch.zeros(3).log_softmax(0), kind=kind)
        (logp_V.exp().detach() * kl_V).sum().backward()
        return scores_V.grad

    assert pull("k1").abs().max() < 1e-6
    gradient = pull(Algo().kl_loss_type)
    assert gradient[0] > 0.05 > -0.05 > gradient[2]
