"""Packing, sharing prompts and micro-batches change memory and speed; never the loss or the gradient."""

import itertools

import numpy as np
import pytest
import torch
from eager import eager

from strop.algo.base import LossInputs
from strop.algo.batch import Batch, make_batch
from strop.algo.policy import PolicyGradient
from strop.algo.sequence import sums_by_sample
from strop.config.tree import Algo
from strop.nn.loading import CausalLM
from strop.sample import Group, Prompt, Sample, Tokens
from strop.train import packing
from strop.train.forward import _masks, packed_stats
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


def algorithm(**keys: object) -> PolicyGradient:
    return PolicyGradient(Algo(entropy_coef=0.01, **keys), num_updates=1)  # type: ignore[arg-type]


def gradients(
    model: CausalLM, batch: Batch, algo: PolicyGradient, *, max_tokens: int
) -> tuple[float, dict[str, torch.Tensor]]:
    """As the trainer computes them."""
    weights, total = algo.weights(batch), 0.0
    for packed in pack(batch, range(len(batch.samples)), max_tokens=max_tokens):
        stats = packed_stats(model, packed, temperature=batch.temperature, dtype=torch.float32)
        total += backward(algo, batch, stats.logp_N, stats.entropy_N, packed.columns, weights)
    return total, taken_gradients(model)


def one_at_a_time(
    model: CausalLM, batch: Batch, algo: PolicyGradient
) -> tuple[float, dict[str, torch.Tensor]]:
    """The plain form: each sample alone and whole, full logits, transformers' own eager attention."""
    weights, total = algo.weights(batch), 0.0
    theirs = eager(model)
    for row, member in enumerate(batch.samples):
        ids = torch.tensor(member.tokens)[None]
        logits = theirs(input_ids=ids).logits[0].float() / batch.temperature
        logp_all = torch.log_softmax(logits, -1)
        response = np.flatnonzero(member.sequence.sampled)
        at = torch.from_numpy(response - 1)
        logp = logp_all[at, ids[0, response]]
        entropy = -(logp_all[at].exp() * logp_all[at]).sum(-1)
        columns = response - member.prompt_length + batch.tokens_of(row).start
        total += backward(algo, batch, logp, entropy, columns, weights)
    return total, taken_gradients(model)


def backward(algo, batch, logp, entropy, columns, weights) -> float:
    old = logp.detach() + torch.from_numpy(OFFSETS[columns])  # ratios on both sides of both clip bounds
    loss = algo.loss(
        LossInputs(
            logp_N=logp,
            entropy_N=entropy,
            old_N=old,
            ref_N=old,
            behavior_N=old,
            advantage_N=torch.from_numpy(batch.advantage[columns]),
            weight_N=torch.from_numpy(weights[columns]),
            sums=sums_by_sample(torch.from_numpy(batch.sample_of_token[columns])),
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


def others_slow(first, *others):
    return [first, *(pytest.param(each, marks=pytest.mark.slow) for each in others)]


@pytest.mark.parametrize("aggregation", others_slow("token_mean", "seq_mean_token_mean", "seq_sum_const"))
def test_packed_gradient_equals_one_sample_at_a_time(tiny, batch, aggregation):
    algo = algorithm(aggregation=aggregation)
    algo.credit(batch)
    plain = one_at_a_time(tiny, batch, algo)
    for max_tokens in (10_000, 40, 12, 1):
        assert_exact(tiny, batch, algo, plain, max_tokens=max_tokens)


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


def prompts_of_one_stem(rng: np.random.Generator, stem: int, rests: list[int], size: int) -> Batch:
    """Groups of `size` whose prompts begin alike and differ right after."""
    begins = rng.integers(0, 256, stem).tolist()
    groups = []
    for g, rest in enumerate(rests):
        prompt = [*begins, g, *rng.integers(0, 256, rest).tolist()]
        members = [sample(rng, g * size + i, g, prompt, turns=1 + g % 2) for i in range(size)]
        groups.append(Group(id=g, prompt=Prompt(id=str(g), messages=""), samples=members))
    return make_batch(groups, num_updates=1, max_response_tokens=32, temperature=0.7)


def test_what_all_prompts_begin_with_is_computed_once():
    data = prompts_of_one_stem(np.random.default_rng(4), packing.STEM_TOKENS, [3, 0, 5], 2)
    (packed,) = pack(data, range(6), max_tokens=10_000)
    fed = sum(len(packing._piece(data, row)[1].fed) for row in range(6))
    assert len(packed.ids) == packing.STEM_TOKENS + (4 + 1 + 6) + fed


def test_short_beginnings_are_not_shared():
    data = prompts_of_one_stem(np.random.default_rng(4), packing.STEM_TOKENS - 1, [3, 0], 1)
    (packed,) = pack(data, range(2), max_tokens=10_000)
    fed = sum(len(packing._piece(data, row)[1].fed) for row in range(2))
    assert len(packed.ids) == 2 * packing.STEM_TOKENS + 3 + fed


def test_prompt_that_another_begins_with_keeps_its_last_token(tiny):
    rng = np.random.default_rng(5)
    long = rng.integers(0, 256, 24).tolist()
    groups = [
        Group(g, Prompt(id=str(g), messages=""), [sample(rng, 2 * g + i, g, long[:n]) for i in range(2)])
        for g, n in enumerate((24, 20))
    ]
    nested = make_batch(groups, num_updates=1, max_response_tokens=32, temperature=0.7)
    assert pack(nested, range(4), max_tokens=10_000)[0].blocks[0].num_rows == 19
    algo = algorithm()
    algo.credit(nested)
    assert_exact(tiny, nested, algo, one_at_a_time(tiny, nested, algo), max_tokens=10_000)


@pytest.mark.parametrize("seed", others_slow(0, 1, 2))
def test_shared_beginnings_give_the_gradient_of_one_sample_at_a_time(tiny, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    rests = rng.integers(0, 10, 3).tolist()
    data = prompts_of_one_stem(rng, int(rng.integers(16, 40)), rests, 3)
    algo = algorithm()
    algo.credit(data)
    plain = one_at_a_time(tiny, data, algo)
    for max_tokens, block_tokens in itertools.product((10_000, 80, 1), (512, 10)):
        monkeypatch.setattr(packing, "BLOCK_TOKENS", block_tokens)
        packs = pack(data, range(9), max_tokens=max_tokens)
        assert max_tokens == 1 or all(len(p.ids) <= max_tokens for p in packs)
        assert_exact(tiny, data, algo, plain, max_tokens=max_tokens)


def assert_exact(model: CausalLM, data: Batch, algo: PolicyGradient, plain, *, max_tokens: int) -> None:
    loss, grads = gradients(model, data, algo, max_tokens=max_tokens)
    case = (max_tokens, packing.BLOCK_TOKENS)
    assert loss == pytest.approx(plain[0], abs=1e-6), case
    assert largest_difference(plain[1], grads) < 1e-5, case


def test_row_sees_as_many_positions_as_its_window_and_its_past_have(monkeypatch):
    monkeypatch.setattr(packing, "BLOCK_TOKENS", 12)
    data = prompts_of_one_stem(np.random.default_rng(6), 20, [3, 30, 9], 3)
    shared = pack(data, [*range(3), *range(6, 9)], max_tokens=10_000)
    packs = [*shared, *pack(data, range(9), max_tokens=10_000)]
    for window, packed in itertools.product((None, 1, 7, 18, 1000), packs):
        sizes = [block.num_rows for block in packed.blocks]
        positions = torch.from_numpy(packed.positions).split(sizes)
        for mask, own in zip(_masks(packed, sizes, window), positions, strict=True):
            if mask is not None:
                seen = own + 1 if window is None else (own + 1).clamp(max=window)
                assert mask.sum(1).tolist() == seen.tolist(), window
    assert len(shared[0].blocks[-1].prefixes) == 2
