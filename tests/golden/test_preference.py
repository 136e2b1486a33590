"""Preference losses, DPO and its kin: hand-worked values, gradients by differences, what holds for all."""

import itertools
import math

import pytest
import torch

from strop.algo import preference
from strop.algo.kto import batch_kl, kto
from strop.algo.log1mexp import log1mexp
from strop.algo.preference import Lengths, implied_rewards

# One pair: summed log-probs of the policy, then of the reference.
PAIR = (-10.0, -12.0, -11.0, -11.5)


def lengths(chosen, rejected):
    return Lengths(torch.tensor([float(chosen)]), torch.tensor([float(rejected)]))


def kto_pair(chosen_P, rejected_P, ref_chosen_P, ref_rejected_P, *, beta):
    """A pair seen as a good and a bad response."""
    logp_S, ref_S = torch.cat([chosen_P, rejected_P]), torch.cat([ref_chosen_P, ref_rejected_P])
    good_S = torch.arange(len(logp_S)) < len(chosen_P)
    options = {"beta": beta, "desirable_weight": 1.0, "undesirable_weight": 1.0}
    loss_S = kto(logp_S, ref_S, is_desirable_S=good_S, reference_point=torch.tensor(0.2), **options)
    return loss_S.view(2, -1).sum(0)


def on_pair(name, options, pair=PAIR, dtype=torch.float64):
    """The loss of one pair, and its gradient in the two log-probs of the policy."""
    values = [torch.tensor([value], dtype=dtype) for value in pair]
    policy = [value.requires_grad_() for value in values[:2]]
    given = policy if name in WITHOUT_REFERENCE else [*policy, *values[2:]]
    loss = (kto_pair if name == "kto" else getattr(preference, name))(*given, **options)
    assert loss.shape == (1,)
    loss.sum().backward()
    return loss.item(), [value.grad.item() for value in policy]


WITHOUT_REFERENCE = ("simpo", "orpo", "cpo")
LOSSES = [
    pytest.param("dpo", {"beta": 0.1}, 0.62095705, id="2.14-dpo"),
    pytest.param("dpo", {"beta": 0.1, "label_smoothing": 0.1}, 0.63595705, id="2.14-cdpo"),
    pytest.param("robust_dpo", {"beta": 0.1, "flipped": 0.1}, 0.60220705, id="2.14-robust"),
    pytest.param("ipo", {"beta": 0.1, "lengths": None}, 12.25, id="2.14-ipo-summed"),
    pytest.param("ipo", {"beta": 0.1, "lengths": lengths(10, 10)}, 23.5225, id="2.14-ipo-mean"),
    pytest.param("hinge", {"beta": 0.1}, 0.85, id="2.14-hinge"),
    pytest.param(
        "simpo", {"beta": 2.0, "target_margin": 0.5, "lengths": lengths(10, 8)}, 0.47407698, id="2.14-simpo"
    ),
    pytest.param("orpo", {"odds_weight": 0.1, "lengths": lengths(10, 8)}, 1.04011355, id="2.14-orpo"),
    pytest.param("bco_pair", {"beta": 0.1}, 1.31285631, id="2.14-bco"),
    pytest.param("nca_pair", {"beta": 0.1}, 1.35082481, id="2.14-nca"),
    pytest.param("sppo_hard", {"beta": 0.1}, 36.25, id="2.14-sppo"),
    pytest.param("apo_zero", {"beta": 0.1}, 0.96252342, id="2.14-apo"),
    # −log σ(.2) + 1
    pytest.param("cpo", {"beta": 0.1, "nll_weight": 1.0, "lengths": lengths(10, 8)}, 1.59813887, id="cpo"),
    pytest.param("kto", {"beta": 0.1}, 0.48001066 + 0.48250714, id="kto"),
    # −log σ(.1 − .05) − log σ(.05 + .05)
    pytest.param("bco_pair", {"beta": 0.1, "shift": 0.05}, 0.66845964 + 0.64439666, id="bco-shifted"),
]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize(("name", "options", "value"), LOSSES)
def test_loss_of_a_pair(name, options, value, dtype):
    tolerance = 1e-6 if dtype == torch.float64 else 5e-6
    assert on_pair(name, options, dtype=dtype)[0] == pytest.approx(value, abs=tolerance)


@pytest.mark.parametrize(("name", "options", "value"), LOSSES)
def test_gradient_of_a_pair_is_the_slope(name, options, value):
    _, gradient = on_pair(name, options)
    for place, step in enumerate([(1e-5, 0, 0, 0), (0, 1e-5, 0, 0)]):
        above = on_pair(name, options, [a + b for a, b in zip(PAIR, step, strict=True)])[0]
        below = on_pair(name, options, [a - b for a, b in zip(PAIR, step, strict=True)])[0]
        assert gradient[place] == pytest.approx((above - below) / 2e-5, abs=1e-6)


@pytest.mark.parametrize(
    ("beta", "sigmoid", "gradient"), [pytest.param(0.1, 0.53742985, -0.04625702, id="2.14-dpo-gradient")]
)
def test_dpo_moves_the_chosen_up_and_the_rejected_down_alike(beta, sigmoid, gradient):
    loss, (of_chosen, of_rejected) = on_pair("dpo", {"beta": beta})
    assert math.exp(-loss) == pytest.approx(sigmoid, abs=1e-6)
    assert of_chosen == pytest.approx(gradient, abs=1e-6)
    assert of_rejected == pytest.approx(-gradient, abs=1e-6)


@pytest.mark.parametrize(
    ("is_desirable", "log_ratio", "kl", "value"),
    [
        pytest.param(True, 1.0, 0.2, 0.48001066, id="2.14-kto-desirable"),
        pytest.param(False, -0.5, 0.2, 0.48250714, id="2.14-kto-undesirable"),
    ],
)
def test_kto_of_one_response(is_desirable, log_ratio, kl, value):
    loss = kto(
        torch.tensor([-11.0 + log_ratio], dtype=torch.float64),
        torch.tensor([-11.0], dtype=torch.float64),
        is_desirable_S=torch.tensor([is_desirable]),
        reference_point=torch.tensor(kl, dtype=torch.float64),
        beta=0.1,
        desirable_weight=1.0,
        undesirable_weight=1.0,
    )
    assert loss.tolist() == pytest.approx([value], abs=1e-6)


def test_kto_weighs_good_and_bad_responses_apart():
    loss = kto(
        torch.zeros(2),
        torch.zeros(2),
        is_desirable_S=torch.tensor([True, False]),
        reference_point=torch.tensor(0.0),
        beta=0.1,
        desirable_weight=1.5,
        undesirable_weight=0.5,
    )
    assert loss.tolist() == [0.75, 0.25]


@pytest.mark.parametrize(("log_ratios", "kl"), [((0.5, -0.1), 0.2), ((-0.5, 0.1), 0.0)])
def test_reference_point_is_a_kl_so_never_below_zero_and_has_no_gradient(log_ratios, kl):
    logp = torch.tensor(log_ratios, requires_grad=True)
    point = batch_kl(logp, torch.zeros(2))
    assert point.item() == pytest.approx(kl)
    assert not point.requires_grad


@pytest.mark.parametrize(
    ("name", "options", "value"),
    [
        pytest.param("dpo", {}, 0.69314718, id="2.14-sanity-dpo"),
        pytest.param("dpo", {"label_smoothing": 0.1}, 0.69314718, id="2.14-sanity-cdpo"),
    ],
)
def test_policy_equal_to_the_reference_loses_log_two(name, options, value):
    same = (-10.0, -12.0, -10.0, -12.0)
    assert on_pair(name, {"beta": 0.1, **options}, same)[0] == pytest.approx(value, abs=1e-6)


def test_dpo_with_beta_near_zero_has_no_gradient():
    assert on_pair("dpo", {"beta": 1e-9})[1] == pytest.approx([0, 0], abs=1e-9)


FAR = [(1e4, -1e4, 0, 0), (-1e4, 1e4, 0, 0), (0, 0, -1e4, 1e4), (0, 0, 0, 0)]


@pytest.mark.parametrize(("name", "options", "value"), LOSSES)
def test_extremes_in_float32_stay_finite(name, options, value):
    for pair, length in itertools.product(FAR, (1.0, 1000.0)):
        used = {**options, "lengths": lengths(length, length)} if options.get("lengths") else options
        loss, gradient = on_pair(name, used, pair, dtype=torch.float32)
        assert all(map(math.isfinite, (loss, *gradient))), (pair, length)


@pytest.mark.parametrize(("name", "options", "value"), LOSSES)
def test_a_pair_is_judged_by_itself_so_that_a_batch_may_be_split_anywhere(name, options, value):
    """TRL#2615: losses that were not divided by the steps of accumulation; here 4 × 2 is 1 × 8."""
    columns = torch.randn(4, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 9
    loss = kto_pair if name == "kto" else getattr(preference, name)

    def total(size):
        logp = columns.clone().requires_grad_()
        used = logp[:2] if name in WITHOUT_REFERENCE else logp
        parts = [loss(*part, **options).sum() / 8 for part in used.split(size, dim=1)]
        torch.stack(parts).sum().backward()
        return logp.grad

    assert torch.equal(total(2), total(8))


def test_the_loss_falls_and_the_margin_rises_on_a_toy_set():
    logits = torch.zeros(4, 3, requires_grad=True)  # of four prompts with three answers each
    reference = logits.detach().log_softmax(-1)
    seen = []
    for _ in range(50):
        logp = logits.log_softmax(-1)
        columns = (logp[:, 0], logp[:, 1], reference[:, 0], reference[:, 1])
        loss = preference.dpo(*columns, beta=0.5).mean()
        seen.append((loss.item(), implied_rewards(*columns, beta=0.5).margin_P.mean().item()))
        (slope,) = torch.autograd.grad(loss, logits)
        logits.data -= 5.0 * slope
    losses, margins = zip(*seen, strict=True)
    assert list(losses) == sorted(losses, reverse=True)
    assert list(margins) == sorted(margins)
    assert losses[-1] < losses[0] / 2


def test_implied_rewards_of_two_pairs():
    columns = [torch.tensor([a, b]) for a, b in zip(PAIR, (-10.0, -9.0, -10.0, -9.0), strict=True)]
    columns[0].requires_grad_()
    implied = implied_rewards(*columns, beta=0.1)
    assert implied.chosen_P.tolist() == pytest.approx([0.1, 0.0])
    assert implied.rejected_P.tolist() == pytest.approx([-0.05, 0.0])
    assert implied.margin_P.tolist() == pytest.approx([0.15, 0.0])
    assert implied.is_right_P.tolist() == [True, False]
    assert not implied.margin_P.requires_grad


def test_robust_dpo_is_unbiased_on_pairs_of_which_some_are_flipped():
    flipped = (PAIR[1], PAIR[0], PAIR[3], PAIR[2])
    as_given, other_way = (
        on_pair("robust_dpo", {"beta": 0.1, "flipped": 0.2}, p)[0] for p in (PAIR, flipped)
    )
    assert 0.8 * as_given + 0.2 * other_way == pytest.approx(on_pair("dpo", {"beta": 0.1})[0], abs=1e-12)


@pytest.mark.parametrize(
    ("chosen_length", "rejected_length", "log_odds"),
    [pytest.param(10, 8, 0.70619269, id="2.14-orpo-log-odds")],
)
def test_log_odds_of_length_mean_log_probs(chosen_length, rejected_length, log_odds):
    mean_w, mean_l = PAIR[0] / chosen_length, PAIR[1] / rejected_length
    logp = torch.tensor([mean_w, mean_l], dtype=torch.float64)
    odds = (logp - log1mexp(logp)).tolist()
    assert odds[0] - odds[1] == pytest.approx(log_odds, abs=1e-6)


@pytest.mark.parametrize("logp", [-1e-6, -0.01, -0.5, -math.log(2), -0.7, -3.0, -20.0, -80.0])
def test_log1mexp_in_float32_keeps_its_digits(logp):
    x = torch.tensor(logp, requires_grad=True)
    exact = math.log(-math.expm1(x.item())) if logp > -1 else math.log1p(-math.exp(x.item()))
    y = log1mexp(x)
    y.backward()
    assert y.item() == pytest.approx(exact, rel=1e-6)
    assert x.grad.item() == pytest.approx(1 / -math.expm1(-x.item()), rel=1e-6)


@pytest.mark.parametrize("logp", [0.0, 1.0, -1e-30, -1e4, -math.inf])
def test_log1mexp_at_the_edges_is_finite(logp):
    x = torch.tensor([logp], requires_grad=True)
    y = log1mexp(x)
    y.sum().backward()
    assert math.isfinite(y.item())
    assert math.isfinite(x.grad.item())
