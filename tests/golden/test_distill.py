"""On-policy distillation: hand-worked advantages and divergences, and what makes them a distance."""

import math

import numpy as np
import pytest
import torch

from strop.algo.distill import gkd, reverse_kl, reverse_kl_advantage, top_k_reverse_kl
from strop.algo.kl import exact_kl

STUDENT, TEACHER = [0.5, 0.3, 0.2], [0.6, 0.3, 0.1]


def logs(*probabilities):
    return torch.tensor([probabilities], dtype=torch.float64).log()


def drawn(seed, classes=12, rows=64):
    """Two random distributions over `classes`, `rows` times."""
    noise = torch.randn(2, rows, classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (2 * noise).log_softmax(-1)


@pytest.mark.parametrize(
    ("student", "teacher", "kl", "advantage"),
    [pytest.param([-1, -0.5, -2], [-0.7, -0.9, -2], [-0.3, 0.4, 0], [0.3, -0.4, 0], id="2.18-reverse-kl")],
)
def test_advantage_of_three_tokens(student, teacher, kl, advantage):
    student, teacher = np.array(student, np.float32), np.array(teacher, np.float32)
    assert reverse_kl_advantage(student, teacher, coef=1.0) == pytest.approx(advantage, abs=1e-6)
    assert reverse_kl_advantage(student, teacher, coef=-1.0) == pytest.approx(kl, abs=1e-6)
    assert reverse_kl_advantage(student, teacher, coef=0.5) == pytest.approx(
        np.array(advantage) / 2, abs=1e-6
    )


@pytest.mark.parametrize(
    ("student", "teacher", "k", "value", "whole"),
    [
        pytest.param(STUDENT, TEACHER, 1, 0.02041100, 0.04746866, id="2.18-top-1"),
        pytest.param(STUDENT, TEACHER, 2, 0.04746866, 0.04746866, id="all-but-one"),
        pytest.param(STUDENT, TEACHER, 3, 0.04746866, 0.04746866, id="nothing-left-over"),
    ],
)
def test_first_k_symbols_and_the_rest(student, teacher, k, value, whole):
    student, teacher = logs(*student), logs(*teacher)
    assert top_k_reverse_kl(student[:, :k], teacher[:, :k]).item() == pytest.approx(value, abs=1e-6)
    assert reverse_kl(student, teacher).item() == pytest.approx(whole, abs=1e-6)


@pytest.mark.parametrize(
    ("beta", "value"),
    [
        pytest.param(0.0, 0.04007822, id="2.18-gkd-forward"),
        pytest.param(0.5, 0.01077082, id="2.18-gkd-half"),
        pytest.param(1.0, 0.04746866, id="2.18-gkd-reverse"),
    ],
)
def test_gkd_goes_from_the_forward_to_the_reverse_kl(beta, value):
    assert gkd(logs(*STUDENT), logs(*TEACHER), beta=beta).item() == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("beta", [1e-4, 1 - 1e-4])
def test_the_ends_of_gkd_are_its_slopes(beta):
    small = min(beta, 1 - beta)
    end = gkd(logs(*STUDENT), logs(*TEACHER), beta=float(round(beta)))
    assert gkd(logs(*STUDENT), logs(*TEACHER), beta=beta).item() / small == pytest.approx(
        end.item(), rel=1e-3
    )


def test_a_student_that_is_its_teacher_has_nothing_to_learn():
    student, _ = drawn(0)
    same = student.clone().requires_grad_()
    losses = [reverse_kl(same, student), top_k_reverse_kl(same[:, :3], student[:, :3])]
    losses += [gkd(same, student, beta=beta) for beta in (0.0, 0.3, 1.0)]
    for loss in losses:
        assert loss.abs().max().item() < 1e-12
    assert not reverse_kl_advantage(student.numpy(), student.numpy(), coef=1.0).any()


@pytest.mark.parametrize("k", [1, 2, 5, 11, 12])
def test_bins_never_tell_the_two_apart_better_than_the_whole_vocabulary(k):
    student, teacher = drawn(1)
    binned = [top_k_reverse_kl(student[:, :n], teacher[:, :n]) for n in (k, min(k + 1, 12))]
    assert (binned[0] <= binned[1] + 1e-12).all()
    assert (binned[0] <= reverse_kl(student, teacher) + 1e-12).all()
    assert (binned[0] >= 0).all()


def test_mean_advantage_over_own_samples_is_minus_the_kl():
    student, teacher = np.array(STUDENT), np.array(TEACHER)
    ids = np.random.default_rng(0).choice(3, 20_000, p=student)
    advantage = reverse_kl_advantage(np.log(student)[ids], np.log(teacher)[ids], coef=1.0)
    sigma = advantage.std(ddof=1) / math.sqrt(len(ids))
    assert abs(advantage.mean() + 0.04746866) < 3 * sigma
    assert sigma < 0.01


def trained(logits, loss_of, *, rate, steps=100):
    """KL(student ‖ teacher) after `steps` as a share of the one before."""
    teacher = torch.tensor([TEACHER], dtype=torch.float64).log()
    logits = torch.tensor([logits], dtype=torch.float64, requires_grad=True)
    kl = [exact_kl(logits.detach().log_softmax(-1), teacher).item()]
    for step in range(steps):
        loss_of(logits.log_softmax(-1), teacher, step).backward()
        with torch.no_grad():
            logits -= rate * logits.grad
            logits.grad.zero_()
    kl.append(exact_kl(logits.detach().log_softmax(-1), teacher).item())
    return kl[1] / kl[0]


def of_samples(student, teacher, step):
    """The policy gradient of 64 tokens that the student draws."""
    ids = np.random.default_rng(step).choice(3, 64, p=student.detach().exp().numpy()[0])
    advantage = reverse_kl_advantage(student.detach().numpy()[0, ids], teacher.numpy()[0, ids], coef=1.0)
    return -(student[0, ids] * torch.from_numpy(advantage)).mean()


@pytest.mark.parametrize(
    "loss_of",
    [
        of_samples,
        lambda student, teacher, _: reverse_kl(student, teacher).sum(),
        lambda student, teacher, _: top_k_reverse_kl(student[:, :2], teacher[:, :2]).sum(),
        lambda student, teacher, _: gkd(student, teacher, beta=0.5).sum() * 4,
    ],
    ids=["samples", "whole", "top-2", "gkd"],
)
def test_a_student_of_three_symbols_ends_below_a_twentieth_of_its_kl(loss_of):
    assert trained([-1.0, 0.5, 2.0], loss_of, rate=0.6) < 0.05


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_symbols_that_neither_can_draw_add_nothing_and_have_finite_gradients(beta):
    logits = torch.tensor([[0.0, 1.0, 2.0]], requires_grad=True)
    out = torch.tensor([[False, False, True]])
    student = logits.masked_fill(out, -math.inf).log_softmax(-1)
    teacher = torch.tensor([[1.0, 0.0, -math.inf]]).log_softmax(-1)
    loss = gkd(student, teacher, beta=beta)
    loss.sum().backward()
    assert 0 < loss.item() < 1
    assert logits.grad.isfinite().all()
    assert logits.grad[0, 2] == 0


def test_no_gradient_reaches_the_teacher():
    student, teacher = (x.requires_grad_() for x in drawn(2).clone().unbind())
    loss = reverse_kl(student, teacher) + top_k_reverse_kl(student[:, :2], teacher[:, :2])
    (loss + gkd(student, teacher, beta=0.5)).sum().backward()
    assert student.grad.abs().sum() > 0
    assert teacher.grad is None


def test_extreme_log_probs_in_float32_stay_finite():
    student = torch.tensor([[-1e4, -1e4], [0.0, -1e4], [-1e-9, -20.0]], requires_grad=True)
    loss = top_k_reverse_kl(student, torch.tensor([[0.0, -1e4], [-1e4, -1e4], [-1e-9, -21.0]]))
    loss.sum().backward()
    assert loss.isfinite().all()
    assert student.grad.isfinite().all()
