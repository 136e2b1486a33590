"""Chunked log-probs and entropies equal the plain ones, forward and backward."""

from itertools import product

import numpy as np
import torch

from strop.kept import Kept
from strop.nn import logprobs
from strop.nn.logprobs import Distribution

SPANS = [[0, 4, 9], [], [10], list(range(11)), [1, 2], [], [3, 5, 6]]
"""Kept sets of seven tokens over eleven ids; an empty one is all of them."""
KEPT = Kept.of_spans([np.array(span, np.int32) for span in SPANS])
TARGETS = [4, 7, 10, 0, 2, 3, 6]


def plain(hidden, weight, target, of: Distribution):
    logits = hidden @ weight.T
    if of.softcap is not None:
        logits = of.softcap * torch.tanh(logits / of.softcap)
    logits = logits / of.temperature
    logps, entropies = [], []
    for row, logit in enumerate(logits):
        span = SPANS[row] if of.kept is not None and SPANS[row] else list(range(len(weight)))
        logp = torch.log_softmax(logit[span], -1)
        logps.append(logp[span.index(int(target[row]))])
        entropies.append(-(logp.exp() * logp).sum())
    return torch.stack(logps), torch.stack(entropies)


def test_chunked_equals_plain(monkeypatch):
    torch.manual_seed(0)
    hidden = torch.randn(7, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(11, 8, dtype=torch.float64, requires_grad=True)

    def results(compute, of):
        hidden.grad = weight.grad = None
        stats = compute(hidden, weight, torch.tensor(TARGETS), of)
        ((stats[0] * torch.arange(7)).sum() + 0.3 * (stats[1] * torch.arange(7)).sum()).backward()
        return stats[0], stats[1], hidden.grad, weight.grad

    for temperature, softcap, kept in product((1.0, 0.6), (None, 2.0), (None, KEPT)):
        of = Distribution(temperature, softcap, kept)
        expected = results(plain, of)
        for chunk_tokens in (1, 3, 1000):
            monkeypatch.setattr(logprobs, "CHUNK_BYTES", 4 * 11 * chunk_tokens)
            case = f"{temperature=}, {softcap=}, {kept=}, {chunk_tokens=}: ".__add__
            for ours, theirs in zip(results(logprobs.token_stats, of), expected, strict=True):
                torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-8, msg=case)


def test_second_backward_pass_over_a_kept_graph_gives_the_same_gradient():
    torch.manual_seed(0)
    hidden = torch.randn(7, 8, dtype=torch.float64, requires_grad=True)
    stats = logprobs.token_stats(
        hidden, torch.randn(11, 8, dtype=torch.float64), torch.tensor(TARGETS), Distribution(0.6)
    )
    first, second = (torch.autograd.grad(stats.logp_N.sum(), hidden, retain_graph=True)[0] for _ in range(2))
    torch.testing.assert_close(first, second, rtol=0, atol=1e-12)


def test_sets_of_all_ids_are_no_sets_at_all():
    torch.manual_seed(0)
    hidden, weight, target = torch.randn(7, 8), torch.randn(11, 8), torch.tensor(TARGETS)
    every = Kept.of_spans([np.arange(11, dtype=np.int32)] * 7)
    free = logprobs.token_stats(hidden, weight, target, Distribution())
    kept = logprobs.token_stats(hidden, weight, target, Distribution(kept=every))
    assert torch.equal(free.logp_N, kept.logp_N)
    assert torch.equal(free.entropy_N, kept.entropy_N)


def test_set_of_one_token_is_certain_and_moves_nothing():
    hidden = torch.randn(1, 8, requires_grad=True)
    one = Kept.of_spans([np.array([5], np.int32)])
    stats = logprobs.token_stats(hidden, torch.randn(11, 8), torch.tensor([5]), Distribution(kept=one))
    (stats.logp_N + stats.entropy_N).sum().backward()
    assert (stats.logp_N.item(), stats.entropy_N.item()) == (0, 0)
    assert hidden.grad is not None
    assert not hidden.grad.any()


def test_no_tokens_give_empty_results_with_a_graph():
    hidden = torch.zeros(0, 8, requires_grad=True)
    weight = torch.randn(11, 8, requires_grad=True)
    stats = logprobs.token_stats(hidden, weight, torch.zeros(0, dtype=torch.long), Distribution())
    stats.logp_N.sum().backward()
    assert weight.grad is not None
    assert not weight.grad.any()
