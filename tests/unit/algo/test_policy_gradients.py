"""Gradients of policy losses against finite differences, both forms of GSPO, and what is not trained."""

import math
from functools import partial

import pytest
import torch

from strop.algo.kl import estimate_kl, exact_kl, jensen_shannon
from strop.algo.losses import cispo, clipped_surrogate, gspo, gspo_token
from strop.algo.sequence import mean_of_sample, sums_by_sample

SAMPLE = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 2, 2])
MASK = torch.tensor([1, 1, 1, 1, 0, 1, 0, 1, 1, 1], dtype=torch.bool)
N = len(SAMPLE)
CLIPS = {"clip_low": 0.2, "clip_high": 0.28}
WHERE = {"mask_N": MASK, "sums": sums_by_sample(SAMPLE)}
WEIGHT = torch.rand(N, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


def drawn(seed, scale=1.0):
    return scale * torch.randn(N, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


LOGP, OLD, REF, ADVANTAGE = drawn(1) - 3, drawn(1) - 3 + drawn(2, 0.3), drawn(1) - 3 + drawn(3), drawn(4)
OF_SAMPLE = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)[SAMPLE]
"""An advantage for each sample."""


def slopes(function, at):
    """Central differences of a scalar function, coordinate by coordinate."""
    steps = 1e-6 * torch.eye(len(at), dtype=torch.float64)
    return torch.stack([(function(at + step) - function(at - step)) / 2e-6 for step in steps])


def gradient(function, at):
    at = at.clone().requires_grad_()
    return torch.autograd.grad(function(at), at)[0]


def mean_of_means(losses):
    """`seq_mean_token_mean` of the three samples."""
    return mean_of_sample_weights() @ losses


def mean_of_sample_weights():
    counts = WHERE["sums"](MASK.double())
    return MASK.double() / counts / 3


FUNCTIONS = {
    "k1": lambda x: estimate_kl(x, REF, kind="k1"),
    "k2": lambda x: estimate_kl(x, REF, kind="k2"),
    "k3": lambda x: estimate_kl(x, REF, kind="k3"),
    "low_var_kl": lambda x: estimate_kl(x, REF, kind="low_var_kl"),
    "unbiased k3": lambda x: estimate_kl(x, REF, kind="k3", old_N=OLD),
    "unbiased low_var_kl": lambda x: estimate_kl(x, REF, kind="low_var_kl", old_N=OLD),
    "clip": lambda x: clipped_surrogate(x, OLD, advantage_N=ADVANTAGE, dual_clip=None, **CLIPS).loss_N,
    "dual clip": lambda x: clipped_surrogate(x, OLD, advantage_N=ADVANTAGE, dual_clip=1.1, **CLIPS).loss_N,
}


def test_gradient_is_the_slope():
    def total(function, x):
        return WEIGHT @ function(x)

    for name, function in FUNCTIONS.items():
        found = gradient(partial(total, function), LOGP)
        assert torch.allclose(found, slopes(partial(total, function), LOGP), atol=1e-7), name
        assert found.abs().max() > 0.01, name


def test_cispo_has_the_slope_along_which_its_ratio_stays():
    def total(x):
        return WEIGHT @ cispo(x, OLD + x.detach() - LOGP, advantage_N=ADVANTAGE, **CLIPS).loss_N

    assert torch.allclose(gradient(total, LOGP), slopes(total, LOGP), atol=1e-7)


def test_cispo_has_no_lower_bound_unless_asked():
    loss = cispo(
        torch.tensor([-9.0]), torch.zeros(1), advantage_N=torch.ones(1), clip_low=math.inf, clip_high=0.28
    )
    assert loss.loss_N.item() == pytest.approx(9 * math.exp(-9))
    assert not loss.clipped_low_N


def test_every_token_of_cispo_keeps_a_gradient():
    old = LOGP - torch.linspace(-3, 3, N, dtype=torch.float64)
    found = gradient(lambda x: cispo(x, old, advantage_N=ADVANTAGE, **CLIPS).loss_N.sum(), LOGP)
    clipped = gradient(
        lambda x: clipped_surrogate(x, old, advantage_N=ADVANTAGE, dual_clip=None, **CLIPS).loss_N.sum(), LOGP
    )
    assert (found != 0).all()
    assert (clipped == 0).any()


def of_sequences(x, *, clip_low, clip_high):
    """GSPO's equation, written sample by sample, its gradient by autograd."""
    losses = []
    for sample in range(3):
        rows = (sample == SAMPLE) & MASK
        ratio = (x[rows] - OLD[rows]).mean().exp()
        advantage = OF_SAMPLE[rows][0]
        bounded = ratio.clamp(1 - clip_low, 1 + clip_high)
        losses.append(-torch.minimum(ratio * advantage, bounded * advantage))
    return torch.stack(losses).mean()


@pytest.mark.parametrize(
    "clips", [{"clip_low": 9.0, "clip_high": 9.0}, CLIPS, {"clip_low": 0.01, "clip_high": 0.02}]
)
@pytest.mark.parametrize("form", [gspo, gspo_token])
def test_gspo_has_the_value_and_gradient_of_its_equation(form, clips):
    def total(x):
        return mean_of_means(form(x, OLD, advantage_N=OF_SAMPLE, **WHERE, **clips).loss_N)

    def equation(x):
        return of_sequences(x, **clips)

    assert total(LOGP).item() == pytest.approx(equation(LOGP).item(), abs=1e-12)
    assert torch.allclose(gradient(total, LOGP), gradient(equation, LOGP), atol=1e-12)
    assert torch.allclose(gradient(total, LOGP), slopes(total, LOGP), atol=1e-7)


def test_forms_of_gspo_part_where_tokens_have_their_own_advantages():
    forms = [
        gradient(
            lambda x, form=form: mean_of_means(
                form(x, OLD, advantage_N=ADVANTAGE, clip_low=9.0, clip_high=9.0, **WHERE).loss_N
            ),
            LOGP,
        )
        for form in (gspo, gspo_token)
    ]
    in_first = slice(0, 3)
    assert torch.allclose(forms[0][in_first], forms[0][in_first].mean())
    assert torch.allclose(forms[1][in_first] / forms[0][0], ADVANTAGE[in_first] / ADVANTAGE[in_first].mean())


def test_ratio_of_a_sample_counts_trained_tokens_of_all_turns_only():
    """A tool token in the middle of sample 2 and one at the end of sample 1 have no part in it."""
    moved = OLD.clone()
    moved[~MASK] = torch.nan
    options = {"advantage_N": OF_SAMPLE, "clip_low": 9.0, "clip_high": 9.0, **WHERE}
    assert torch.equal(gspo(LOGP, moved, **options).loss_N, gspo(LOGP, OLD, **options).loss_N)


def split_sums(other_rows, recorded):
    """Sums of a rank that has some of the tokens: those of all ranks, as they were found there."""
    calls = iter(recorded)
    return lambda value_N: next(calls)[other_rows]


@pytest.mark.parametrize("form", [gspo, gspo_token])
def test_gspo_does_not_depend_on_how_a_sample_is_split_over_ranks(form):
    recorded = []

    def recording(value_N):
        recorded.append(WHERE["sums"](value_N))
        return recorded[-1]

    def total(x, rows, sums):
        losses = form(
            x[rows], OLD[rows], advantage_N=ADVANTAGE[rows], mask_N=MASK[rows], sums=sums, **CLIPS
        ).loss_N
        return mean_of_sample_weights()[rows] @ losses

    every = torch.arange(N)
    whole = gradient(lambda x: total(x, every, recording), LOGP)
    parts = [every[0::2], every[1::2]]
    split = sum(gradient(lambda x, r=rows: total(x, r, split_sums(r, recorded)), LOGP) for rows in parts)
    assert torch.allclose(whole, split, atol=1e-15)


def test_sums_of_no_token_are_no_sums():
    none = torch.zeros(0)
    assert sums_by_sample(none.long())(none).shape == (0,)


def test_sum_of_many_small_values_is_exact_in_float32():
    values = torch.full((100_000,), 0.1)
    sums = sums_by_sample(torch.zeros(100_000, dtype=torch.int64))
    assert sums(values)[0].item() == pytest.approx(10_000, rel=1e-7)


def test_mean_over_nothing_trained_is_zero():
    nothing = torch.zeros(3, dtype=torch.bool)
    sums = sums_by_sample(torch.zeros(3, dtype=torch.int64))
    assert mean_of_sample(torch.full((3,), torch.nan), nothing, sums).tolist() == [0, 0, 0]


def test_k3_plus_has_the_value_of_k3_and_the_gradient_of_k2():
    def total(kind):
        return lambda x: WEIGHT @ estimate_kl(x, REF, kind=kind)

    assert total("k3+")(LOGP).item() == total("k3")(LOGP).item()
    assert torch.equal(gradient(total("k3+"), LOGP), gradient(total("k2"), LOGP))


def test_unbiased_kl_has_the_gradient_of_the_exact_one_when_another_policy_sampled():
    scores = torch.tensor([[0.5, 0.0, -0.9]], dtype=torch.float64, requires_grad=True)
    ref, old = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]], dtype=torch.float64).log()
    logp = scores.log_softmax(-1)
    exact = torch.autograd.grad(exact_kl(logp, ref[None]).sum(), scores, retain_graph=True)[0]
    estimated = {
        kind: torch.autograd.grad(
            (
                old.exp() * estimate_kl(logp[0], ref, kind="k3", old_N=old if kind == "unbiased" else None)
            ).sum(),
            scores,
            retain_graph=True,
        )[0]
        for kind in ("plain", "unbiased")
    }
    assert torch.allclose(estimated["unbiased"], exact, atol=1e-12)
    assert not torch.allclose(estimated["plain"], exact, atol=1e-2)


@pytest.mark.parametrize("divergence", [exact_kl, jensen_shannon])
def test_what_cannot_be_drawn_adds_nothing_to_an_exact_divergence(divergence):
    p = torch.tensor([[0.5, -torch.inf, 0.1]], dtype=torch.float64).log_softmax(-1)
    q = torch.tensor([[0.2, -torch.inf, 0.3]], dtype=torch.float64).log_softmax(-1)
    p.requires_grad_()
    found = divergence(p, q)
    found.sum().backward()
    without = divergence(p.detach()[:, [0, 2]], q[:, [0, 2]])
    assert found.item() == pytest.approx(without.item(), abs=1e-12) != 0
    assert torch.isfinite(p.grad).all()
