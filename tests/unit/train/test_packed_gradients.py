"""Packing, sharing prompts and micro-batches change memory and speed; never the loss or the gradient."""

import numpy as np
import pytest
import torch

from strop.algo.base import LossInputs
from strop.algo.batch import Batch, make_batch
from strop.algo.grpo import Grpo
from strop.config.tree import Algo
from strop.nn.loading import CausalLM
from strop.sample import Group, Prompt, Sample, Tokens
from strop.train import packing
from strop.train.forward import packed_stats
from strop.train.packing import pack

OFFSETS = np.random.default_rng(1).uniform(-0.5, 0.5, 1000).astype(np.float32)


def sample(rng: np.random.Generator, index: int, group: int, prompt: list[int], turns: int = 1) -> Sample:
    made = Sample(index=index, group_id=group, sequence=Tokens.context(prompt), prompt_length=len(prompt))
    for turn in range(turns):
        n = int(rng.integers(1, 9))
        ids, logp = rng.integers(0, 256, n), -rng.random(n)
        made.append_response_tokens(tokens=ids.tolist(), log_probs=logp.tolist())
        if turn < turns - 1:
            made.append_response_tokens(tokens=rng.integers(0, 256, 3).tolist(), trainable=False)
    made.reward = float(rng.random())
    return made


@pytest.fixture
def batch() -> Batch:
    """Three groups of four, one of them with two turns and tool tokens."""
    rng = np.random.default_rng(0)
    groups = []
    for g in range(3):
        prompt = rng.integers(0, 256, 5 + g).tolist()
        members = [sample(rng, g * 4 + i, g, prompt, turns=2 if g == 1 else 1) for i in range(4)]
        groups.append(Group(id=g, prompt=Prompt(id=str(g), messages=""), samples=members))
    return make_batch(groups, num_updates=1, max_response_tokens=32, temperature=0.7)


def algorithm(**keys: object) -> Grpo:
    return Grpo(Algo(entropy_coef=0.01, **keys), num_updates=1)  # type: ignore[arg-type]


def gradients(
    model: CausalLM, batch: Batch, algo: Grpo, *, max_tokens: int
) -> tuple[float, dict[str, torch.Tensor]]:
    """As the trainer computes them."""
    weights, total = algo.weights(batch), 0.0
    for packed in pack(batch, range(len(batch.samples)), max_tokens=max_tokens):
        stats = packed_stats(model, packed, temperature=batch.temperature, dtype=torch.float32)
        total += backward(algo, batch, stats.logp_N, stats.entropy_N, packed.columns, weights)
    return total, taken_gradients(model)


def one_at_a_time(model: CausalLM, batch: Batch, algo: Grpo) -> tuple[float, dict[str, torch.Tensor]]:
    """The plain form: each sample alone and whole, full logits, transformers' own eager attention."""
    weights, total = algo.weights(batch), 0.0
    model.module.set_attn_implementation("eager")
    for row, member in enumerate(batch.samples):
        ids = torch.tensor(member.tokens)[None]
        logits = model.module(input_ids=ids).logits[0].float() / batch.temperature
        logp_all = torch.log_softmax(logits, -1)
        response = np.flatnonzero(member.sequence.sampled)
        at = torch.from_numpy(response - 1)
        logp = logp_all[at, ids[0, response]]
        entropy = -(logp_all[at].exp() * logp_all[at]).sum(-1)
        columns = response - member.prompt_length + batch.tokens_of(row).start
        total += backward(algo, batch, logp, entropy, columns, weights)
    model.module.set_attn_implementation("strop")
    return total, taken_gradients(model)


def backward(algo, batch, logp, entropy, columns, weights) -> float:
    old = logp.detach() + torch.from_numpy(OFFSETS[columns])  # ratios on both sides of both clip bounds
    loss = algo.loss(
        LossInputs(
            logp_N=logp,
            entropy_N=entropy,
            old_N=old,
            ref_N=old,
            advantage_N=torch.from_numpy(batch.advantage[columns]),
            weight_N=torch.from_numpy(weights[columns]),
        )
    )
    loss.total.backward()
    return float(loss.total.detach())


def taken_gradients(model: CausalLM) -> dict[str, torch.Tensor]:
    grads = {name: p.grad.clone() for name, p in model.named_parameters()}
    for _, p in model.named_parameters():
        p.grad = None
    return grads


def largest_difference(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> float:
    """Relative to the largest gradient entry."""
    scale = max(float(g.abs().max()) for g in a.values())
    return max(float((a[n] - b[n]).abs().max()) for n in a) / scale


@pytest.mark.parametrize("aggregation", ["token_mean", "seq_mean_token_mean", "seq_sum_const"])
@pytest.mark.parametrize("max_tokens", [10_000, 40, 12, 1])
def test_packed_gradient_equals_one_sample_at_a_time(tiny, batch, aggregation, max_tokens):
    algo = algorithm(aggregation=aggregation)
    algo.credit(batch)
    loss, grads = gradients(tiny, batch, algo, max_tokens=max_tokens)
    plain_loss, plain = one_at_a_time(tiny, batch, algo)
    assert loss == pytest.approx(plain_loss, abs=1e-6)
    assert largest_difference(plain, grads) < 1e-5


def test_long_groups_attend_in_several_blocks_with_the_same_gradient(tiny, batch, monkeypatch):
    algo = algorithm()
    algo.credit(batch)
    _, whole = gradients(tiny, batch, algo, max_tokens=10_000)
    monkeypatch.setattr(packing, "BLOCK_TOKENS", 10)
    assert max(len(p.blocks) for p in pack(batch, range(12), max_tokens=10_000)) > 3
    _, blocked = gradients(tiny, batch, algo, max_tokens=10_000)
    assert largest_difference(whole, blocked) < 1e-5


def test_prompt_is_computed_once_for_its_group(batch):
    (packed,) = pack(batch, range(4), max_tokens=10_000)
    fed = sum(s.response_length - 1 for s in batch.samples[:4])
    assert len(packed.ids) == 5 + fed


def test_every_sampled_token_is_scored_exactly_once(batch):
    for max_tokens in (1, 17, 10_000):
        columns = np.concatenate([p.columns for p in pack(batch, range(12), max_tokens=max_tokens)])
        sampled = np.concatenate([s.response_tokens.sampled for s in batch.samples])
        assert sorted(columns) == np.flatnonzero(sampled).tolist()


def test_micro_batches_keep_to_the_token_budget(batch):
    assert all(len(p.ids) <= 40 for p in pack(batch, range(12), max_tokens=40))


def test_sample_without_response_is_left_out(batch):
    batch.samples[0].sequence = Tokens.context([1, 2, 3, 4, 5])
    empty = make_batch(
        [Group(id=0, prompt=Prompt(id="0", messages=""), samples=[batch.samples[0]])],
        num_updates=1,
        max_response_tokens=8,
        temperature=1.0,
    )
    assert pack(empty, [0], max_tokens=100) == []


def test_groups_of_the_same_text_share_the_prompt_and_nothing_else(tiny):
    rng = np.random.default_rng(3)
    prompt = rng.integers(0, 256, 6).tolist()
    groups = [
        Group(g, Prompt(id=str(g), messages=""), [sample(rng, 2 * g + i, g, prompt) for i in range(2)])
        for g in range(2)
    ]
    twins = make_batch(groups, num_updates=1, max_response_tokens=32, temperature=0.7)
    algo = algorithm()
    algo.credit(twins)
    (packed,) = pack(twins, range(4), max_tokens=10_000)
    assert len(packed.ids) == 6 + sum(s.response_length - 1 for s in twins.samples)
    assert not np.isclose(twins.rewards[:2].mean(), twins.rewards[2:].mean())
    _, shared = gradients(tiny, twins, algo, max_tokens=10_000)
    _, plain = one_at_a_time(tiny, twins, algo)
    assert largest_difference(plain, shared) < 1e-5
