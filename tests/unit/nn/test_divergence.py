"""The chunked divergence of a student from a teacher equals the plain one, forward and backward."""

from itertools import product

import numpy as np
import pytest
import torch

from strop.algo.distill import gkd, top_k_reverse_kl
from strop.kept import Kept
from strop.nn import logprobs
from strop.nn.divergence import Measure, Predictor, divergence
from strop.nn.logprobs import Distribution

SPANS = [[0, 4, 9], [], [10], list(range(11)), [1, 2], [], [3, 5, 6]]
"""Kept sets of seven tokens over eleven ids; an empty one is all of them."""
KEPT = Kept.of_spans([np.array(span, np.int32) for span in SPANS])
MEASURES = {
    "whole": Measure(),
    "forward": Measure(beta=0.0),
    "between": Measure(beta=0.3),
    "likeliest": Measure(top_k=3),
    "likeliest, between": Measure(beta=0.3, top_k=3),
    "likeliest, forward": Measure(beta=0.0, top_k=2),
}


def models(dtype=torch.float64):
    """Hidden states and heads of a student, and of a wider teacher."""
    torch.manual_seed(0)
    shapes = ((7, 8), (11, 8), (7, 5), (11, 5))
    hidden, head, seen, theirs = (torch.randn(*shape, dtype=torch.float64).to(dtype) for shape in shapes)
    return hidden.requires_grad_(), head.requires_grad_(), seen, theirs


def plain_logp(hidden, head, of, row):
    logit = hidden[row] @ head.T
    if of.softcap is not None:
        logit = of.softcap * torch.tanh(logit / of.softcap)
    span = SPANS[row] if of.kept is not None and SPANS[row] else range(len(head))
    return torch.log_softmax(logit[list(span)] / of.temperature, -1)[None]


def plain(student, teacher, measure):
    """One token at a time, from all logits."""
    found = []
    for row in range(len(student.hidden_ND)):
        p, q = (plain_logp(x.hidden_ND, x.head_VD, x.distribution, row) for x in (student, teacher))
        k = measure.top_k
        if k is not None and measure.beta == 1:
            chosen = p[0].detach().topk(min(k, p.shape[1])).indices
            found.append(top_k_reverse_kl(p[:, chosen], q[:, chosen]))
            continue
        if k is not None:
            chosen = p[0].detach().topk(min(k, p.shape[1])).indices
            rest = torch.ones(p.shape[1], dtype=torch.bool)
            rest[chosen] = False
            p, q = (torch.cat([x[:, chosen], x[:, rest].logsumexp(-1, keepdim=True)], 1) for x in (p, q))
        found.append(gkd(p, q, beta=measure.beta))
    return torch.cat(found)


@pytest.mark.parametrize("kept", [None, KEPT], ids=["all", "kept"])
def test_chunked_divergence_equals_plain(monkeypatch, kept):
    hidden, head, seen, theirs = models()

    def results(compute, measure, softcap, temperature):
        student = Predictor(hidden, head, Distribution(temperature, softcap, kept))
        teacher = Predictor(seen, theirs, Distribution(temperature, None, kept))
        hidden.grad = head.grad = None
        found = compute(student, teacher, MEASURES[measure])
        (found * torch.arange(7)).sum().backward()
        return found, hidden.grad, head.grad

    for measure, softened in product(MEASURES, [(None, 1.0), (2.0, 0.6)]):
        expected = results(plain, measure, *softened)
        for chunk_tokens in (3, 1000):
            monkeypatch.setattr(logprobs, "CHUNK_BYTES", 4 * 11 * chunk_tokens)
            case = f"{measure}, {softened}, {chunk_tokens=}: ".__add__
            for ours, other in zip(results(divergence, measure, *softened), expected, strict=True):
                torch.testing.assert_close(ours, other, rtol=0, atol=1e-8, msg=case)


def test_a_student_that_is_its_teacher_has_neither_divergence_nor_gradient():
    of = Distribution(0.7, None, KEPT)
    for measure in MEASURES:
        hidden, head, *_ = models(torch.float32)
        same = Predictor(hidden.detach().clone(), head.detach().clone(), of)
        found = divergence(Predictor(hidden, head, of), same, MEASURES[measure])
        found.sum().backward()
        assert found.abs().max() < 1e-6, measure
        assert hidden.grad.abs().max() < 1e-6, measure


def test_certain_students_and_teachers_give_finite_numbers():
    of = Distribution()
    for case in product(MEASURES, (torch.float32, torch.bfloat16)):
        measure, dtype = case
        hidden, head, seen, theirs = models(dtype)
        hidden.data *= 100
        found = divergence(Predictor(hidden, head, of), Predictor(seen * 100, theirs, of), MEASURES[measure])
        found.sum().backward()
        assert found.dtype is torch.float32, case
        assert all(x.isfinite().all() for x in (found, hidden.grad, head.grad)), case


def test_a_frozen_head_gets_no_gradient():
    hidden, head, seen, theirs = models()
    head.requires_grad_(False)
    of = Distribution()
    divergence(Predictor(hidden, head, of), Predictor(seen, theirs, of), Measure()).sum().backward()
    assert head.grad is None
    assert hidden.grad.any()


def test_no_tokens_have_a_graph():
    _, head, _, theirs = models()
    none = torch.zeros(0, 8, dtype=torch.float64, requires_grad=True)
    seen = torch.zeros(0, 5, dtype=torch.float64)
    of = Distribution()
    divergence(Predictor(none, head, of), Predictor(seen, theirs, of), Measure()).sum().backward()
    assert not head.grad.any()
