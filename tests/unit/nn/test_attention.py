"""Windows and caps, however the queries are cut, against the formula written out."""

from functools import partial
from itertools import product

import pytest
import torch

from strop.nn import attention as module
from strop.nn.attention import Rule, attention, within

T, H, K, D = 11, 4, 2, 5


@pytest.fixture
def qkv():
    torch.manual_seed(0)
    return tuple(torch.randn(1, heads, T, D, dtype=torch.float64) for heads in (H, K, K))


def written_out(q, k, v, rule):
    k, v = k.repeat_interleave(H // K, 1), v.repeat_interleave(H // K, 1)
    scores = q @ k.transpose(2, 3) * rule.scale
    if rule.softcap is not None:
        scores = rule.softcap * torch.tanh(scores / rule.softcap)
    distance = torch.arange(T)[:, None] - torch.arange(T)
    seen = (distance >= 0) & (distance < (rule.window or T))
    return torch.softmax(scores.masked_fill(~seen, float("-inf")), -1) @ v


RULES = [Rule(0.5), Rule(0.5, window=3), Rule(0.5, softcap=0.7), Rule(0.5, window=3, softcap=0.7)]


def test_strips_of_a_sequence_equal_the_formula(qkv, monkeypatch):
    windows = (Rule(0.5, window=window) for window in (1, T, 99))
    for rule, strip in product([*RULES, *windows], (1, 4, 512)):
        monkeypatch.setattr(module, "STRIP", strip)
        found, case = attention(*qkv, rule, is_causal=True), f"{rule}, {strip=}: ".__add__
        torch.testing.assert_close(found, written_out(*qkv, rule), msg=case)


def test_gradients_equal_those_of_the_formula(qkv, monkeypatch):
    for rule in RULES:
        monkeypatch.setattr(module, "STRIP", 4)
        weight, grads = torch.linspace(-1, 1, D, dtype=torch.float64), []
        for compute in (partial(attention, is_causal=True), written_out):
            inputs = [x.clone().requires_grad_() for x in qkv]
            (compute(*inputs, rule) * weight).sum().backward()
            grads.append([x.grad for x in inputs])
        torch.testing.assert_close(*grads, msg=f"{rule}: ".__add__)


def test_a_window_goes_by_positions_not_by_rows():
    # two samples of one prompt side by side: both begin at position 2
    assert within(torch.tensor([2, 3, 2, 3]), torch.tensor([0, 1, 2, 3, 2, 3]), 2).tolist() == [
        [False, True, True, True, True, True],
        [False, False, True, True, True, True],
        [False, True, True, True, True, True],
        [False, False, True, True, True, True],
    ]
