"""Every supported family, in engine and trainer, against transformers' own eager attention."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from eager import of_transformers
from families import FAMILIES, make_family

from strop.algo.batch import Batch, make_batch
from strop.algo.policy import PolicyGradient
from strop.config.tree import Algo, Optim, Train
from strop.engines.base import Completion, Request
from strop.engines.local.engine import LocalEngine
from strop.nn.catalog import model_path
from strop.nn.loading import CausalLM, load_model, outline
from strop.nn.saving import read_weights, save_model
from strop.runtime.compute import Compute
from strop.sample import Group, Prompt, Sample, Sampling, Tokens
from strop.train import packing
from strop.train.forward import packed_stats
from strop.train.local import LocalTrainer, Models
from strop.train.packing import pack

pytestmark = pytest.mark.slow

STOP = 256
PROMPTS = [[10, 20, 30], list(range(40, 57)), [7], [10, 20, 30]]


@dataclass(frozen=True)
class Pair:
    """One directory, loaded twice."""

    directory: Path
    ours: CausalLM
    theirs: Any


@pytest.fixture(
    scope="module",
    params=FAMILIES,
)
def pair(request, tmp_path_factory) -> Pair:
    directory = make_family(request.param, tmp_path_factory.mktemp("families") / request.param)
    theirs = of_transformers(directory, attn_implementation="eager")
    return Pair(directory, load_model(directory, torch.float32), theirs)


async def complete(model: CausalLM, *, temperature: float, n: int) -> list[Completion]:
    """Of all prompts at once: rows of the cache at different positions."""
    compute = Compute()
    engine = LocalEngine(model, compute, max_tokens=4096, stop_ids=(STOP,))
    sampling = Sampling(max_tokens=n, temperature=temperature)
    requests = [Request(str(i), np.array(p, np.int32), sampling, seed=i) for i, p in enumerate(PROMPTS)]
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(engine.serve())
        completions = await asyncio.gather(*(engine.generate(r) for r in requests))
        serving.cancel()
    compute.close()
    return completions


def eager_logp(module: Any, ids: list[int], *, temperature: float) -> torch.Tensor:
    """Of each token but the first, by one plain forward over the whole sequence."""
    logits = module(input_ids=torch.tensor([ids])).logits[0].float() / temperature
    return torch.log_softmax(logits, -1)[torch.arange(len(ids) - 1), torch.tensor(ids[1:])]


async def test_greedy_equals_generate(pair):
    completions = await complete(pair.ours, temperature=0, n=12)
    ids = torch.tensor([PROMPTS[1]])
    theirs = pair.theirs.generate(ids, max_new_tokens=12, do_sample=False, eos_token_id=STOP)
    assert completions[1].ids.tolist() == theirs[0, ids.shape[1] :].tolist()
    assert len(set(completions[1].ids.tolist())) > 3


async def test_drawn_logprobs_equal_a_teacher_forced_eager_forward(pair):
    for prompt, completion in zip(PROMPTS, await complete(pair.ours, temperature=0.8, n=12), strict=True):
        with torch.no_grad():
            expected = eager_logp(pair.theirs, prompt + completion.ids.tolist(), temperature=0.8)
        np.testing.assert_allclose(completion.logp, expected[len(prompt) - 1 :], atol=1e-4)


def batch_of(rewards: list[float]) -> Batch:
    """Groups of three, their prompts and responses longer than the windows."""
    rng, groups = np.random.default_rng(0), []
    for g in range(len(rewards) // 3):
        prompt, members = rng.integers(0, 256, 9 + g).tolist(), []
        for i in range(3):
            member = Sample(index=i, group_id=g, sequence=Tokens.context(prompt), prompt_length=len(prompt))
            n = int(rng.integers(4, 12))
            member.append_response_tokens(tokens=rng.integers(0, 256, n).tolist(), log_probs=[-5.0] * n)
            member.reward = rewards[3 * g + i]
            members.append(member)
        groups.append(Group(id=g, prompt=Prompt(id=str(g), messages=""), samples=members))
    return make_batch(groups, num_updates=1, max_response_tokens=16, temperature=0.7)


def taken_gradients(module: Any) -> dict[str, torch.Tensor]:
    gradients = {name: p.grad.clone() for name, p in module.named_parameters()}
    module.zero_grad()
    return gradients


def plain(module: Any, batch: Batch) -> tuple[np.ndarray, dict[str, torch.Tensor]]:
    """Each sample alone and whole."""
    column = []
    for sample in batch.samples:
        logp = eager_logp(module, sample.tokens, temperature=batch.temperature)
        logp = logp[sample.prompt_length - 1 :]
        (logp * torch.linspace(-1, 1, len(logp))).sum().backward()
        column.append(logp.detach().numpy())
    return np.concatenate(column), taken_gradients(module)


def packed(model: CausalLM, batch: Batch) -> tuple[np.ndarray, dict[str, torch.Tensor]]:
    """Both prompts once, end to end."""
    weights = np.concatenate([np.linspace(-1, 1, len(s.tokens) - s.prompt_length) for s in batch.samples])
    (micro,) = pack(batch, range(len(batch.samples)), max_tokens=1000)
    logp_N = packed_stats(model, micro, temperature=batch.temperature, dtype=torch.float32).logp_N
    (logp_N * torch.from_numpy(weights[micro.columns])).sum().backward()
    column = np.empty(batch.num_tokens, np.float32)
    column[micro.columns] = logp_N.detach().numpy()
    return column, taken_gradients(model.module)


@pytest.mark.parametrize("block_tokens", [512, 15], ids=["one block a group", "several"])
def test_packed_logprobs_and_gradients_equal_each_sample_alone(pair, monkeypatch, block_tokens):
    monkeypatch.setattr(packing, "BLOCK_TOKENS", block_tokens)
    batch = batch_of([0.0] * 6)
    expected_logp, expected = plain(pair.theirs, batch)
    logp, gradients = packed(pair.ours, batch)
    np.testing.assert_allclose(logp, expected_logp, atol=1e-4)
    largest = max(float(g.abs().max()) for g in expected.values())
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[name], rtol=0, atol=1e-5 * largest, msg=name)


async def test_a_step_changes_every_weight_and_a_checkpoint_brings_it_back(pair, tmp_path):
    model = load_model(pair.directory, torch.float32)
    grpo = PolicyGradient(Algo(), num_updates=1)
    trainer = LocalTrainer(Models(model), Train(optim=Optim(lr=1e-2)), grpo, Compute(), total_updates=1)
    batch = batch_of([1.0, 0.0, 0.5] * 2)
    grpo.credit(batch)
    await trainer.step(batch)
    trainer.save(tmp_path)
    outline(model_path(str(tmp_path)))
    trained = {name: p.detach().clone() for name, p in model.named_parameters()}
    before = dict(pair.ours.named_parameters())
    assert [name for name, p in trained.items() if torch.equal(p, before[name])] == []
    read_weights(model, pair.directory)
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    trainer.load(tmp_path, trainer.state())
    assert all(torch.equal(p, trained[name]) for name, p in model.named_parameters())


def test_a_saved_model_is_the_directory_that_it_came_from(pair, tmp_path):
    save_model(pair.ours, tmp_path)
    ours, theirs = (of_transformers(d).state_dict() for d in (tmp_path, pair.directory))
    assert all(torch.equal(ours[name], weight) for name, weight in theirs.items())
    assert (tmp_path / "config.json").read_bytes() == (pair.directory / "config.json").read_bytes()
