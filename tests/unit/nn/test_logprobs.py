"""Chunked log-probs and entropies equal the plain ones, forward and backward."""

import pytest
import torch

from strop.nn import logprobs


def plain(hidden, weight, target, temperature):
    logp = torch.log_softmax(hidden @ weight.T / temperature, -1)
    return logp.gather(1, target[:, None])[:, 0], -(logp.exp() * logp).sum(-1)


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("chunk_tokens", [1, 3, 1000])
def test_chunked_equals_plain(monkeypatch, temperature, chunk_tokens):
    torch.manual_seed(0)
    hidden = torch.randn(7, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(11, 8, dtype=torch.float64, requires_grad=True)
    target = torch.randint(0, 11, (7,))
    monkeypatch.setattr(logprobs, "CHUNK_BYTES", 4 * 11 * chunk_tokens)
    results = []
    for stats in (
        logprobs.token_stats(hidden, weight, target, temperature=temperature),
        plain(hidden, weight, target, temperature),
    ):
        ((stats[0] * torch.arange(7)).sum() + 0.3 * (stats[1] * torch.arange(7)).sum()).backward()
        results.append((stats[0], stats[1], hidden.grad, weight.grad))
        hidden.grad = weight.grad = None
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-8)


def test_no_tokens_give_empty_results_with_a_graph():
    hidden = torch.zeros(0, 8, requires_grad=True)
    weight = torch.randn(11, 8, requires_grad=True)
    stats = logprobs.token_stats(hidden, weight, torch.zeros(0, dtype=torch.long), temperature=1.0)
    stats.logp_N.sum().backward()
    assert weight.grad is not None
    assert not weight.grad.any()
