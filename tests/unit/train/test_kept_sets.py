"""The trainer speaks of the distribution that was sampled from: its temperature, and its kept sets."""

import asyncio
from itertools import count

import numpy as np
import pytest
from fresh import fresh

from strop.algo.batch import Batch, make_batch
from strop.algo.policy import PolicyGradient
from strop.config.tree import Algo, Optim, Train
from strop.engines.base import Completion, Request
from strop.engines.local.engine import LocalEngine
from strop.nn.loading import CausalLM
from strop.runtime.compute import Compute
from strop.sample import Group, Prompt, Sample, Sampling, Tokens
from strop.train.local import LocalTrainer, Models
from strop.train.packing import pack

PROMPTS = [[10, 20, 30], [65, 66, 67, 68, 69]]
CUTS = {
    "temperature alone": {},
    "top-p and top-k": {"top_p": 0.9, "top_k": 20},
    "min-p": {"min_p": 0.7},
    "top-p": {"top_p": 0.5},
}


async def sampled(model: CausalLM, sampling: Sampling) -> list[Completion]:
    """Two samples of each prompt."""
    compute = Compute()
    engine = LocalEngine(model, compute, max_tokens=2048, stop_ids=())
    serving = asyncio.ensure_future(engine.serve())
    requests = [Request(str(i), np.array(PROMPTS[i // 2], np.int32), sampling, seed=i) for i in range(4)]
    completions = await asyncio.gather(*(engine.generate(request) for request in requests))
    serving.cancel()
    await asyncio.wait({serving})
    compute.close()
    return completions


def batch_of(completions: list[Completion], temperature: float) -> Batch:
    samples = []
    for i, completion in enumerate(completions):
        prompt = PROMPTS[i // 2]
        sample = Sample(index=i, group_id=i // 2, sequence=Tokens.context(prompt), prompt_length=len(prompt))
        sample.append_response_tokens(
            tokens=completion.ids.tolist(), log_probs=completion.logp.tolist(), meta_info=completion.extras
        )
        sample.append_response_tokens(tokens=[1, 2], trainable=False)
        sample.reward = float(i % 2)
        samples.append(sample)
    groups = [Group(g, Prompt(id=str(g), messages=""), samples[2 * g : 2 * g + 2]) for g in range(2)]
    return make_batch(groups, num_updates=1, max_response_tokens=16, temperature=temperature)


def trainer_of(model: CausalLM, **keys) -> LocalTrainer:
    algorithm = PolicyGradient(Algo(**keys), num_updates=1)
    reference = fresh(model.source) if "ref" in algorithm.needs else None
    return LocalTrainer(
        Models(model, reference), Train(optim=Optim(lr=1e-2)), algorithm, Compute(), total_updates=9
    )


async def stepped(trainer: LocalTrainer, batch: Batch) -> dict[str, float]:
    for what in sorted(trainer._algorithm.needs):
        batch.scored[what] = await trainer.score(batch, what)
    trainer._algorithm.credit(batch)
    return await trainer.step(batch)


@pytest.mark.parametrize("cut", CUTS)
async def test_trainer_and_sampler_speak_of_one_distribution(tiny, cut):
    """TRL#3029, TRL#4159: temperature; TRL#6789: top-p, top-k, min-p."""
    sampling = Sampling(max_tokens=10, temperature=0.6, **CUTS[cut])
    batch = batch_of(await sampled(tiny, sampling), 0.6)
    old = await trainer_of(tiny).score(batch, "old")
    drawn = np.isfinite(batch.behavior)
    assert drawn.sum() == 40
    assert np.abs(old - batch.behavior)[drawn].max() < 1e-4
    if CUTS[cut]:
        batch.kept = None
        assert np.abs(await trainer_of(tiny).score(batch, "old") - batch.behavior)[drawn].max() > 0.1


async def test_on_policy_ratio_is_exactly_one(tiny):
    """verl#3119: what is recomputed differs from what is trained."""
    batch = batch_of(await sampled(tiny, Sampling(max_tokens=10, top_p=0.9)), 1.0)
    metrics = await stepped(trainer_of(tiny), batch)
    assert (metrics["train/ppo_kl"], metrics["train/pg_clipfrac"]) == (0, 0)
    assert metrics["train/train_rollout_logprob_abs_diff_max"] < 1e-4


async def test_reference_is_of_the_same_sets(tiny):
    batch = batch_of(await sampled(tiny, Sampling(max_tokens=10, top_p=0.7, top_k=9)), 1.0)
    trainer = trainer_of(tiny, kl_loss_coef=0.1)
    assert (await stepped(trainer, batch))["train/kl_loss"] == pytest.approx(0, abs=1e-6)
    assert (await stepped(trainer, batch))["train/kl_loss"] > 1e-4


async def test_entropy_is_of_the_kept_set(tiny):
    batch = batch_of(await sampled(tiny, Sampling(max_tokens=10, top_k=2)), 1.0)
    entropy = (await stepped(trainer_of(tiny), batch))["train/entropy"]
    assert 0 < entropy <= np.log(2) + 1e-6


def grown(prompt: list[int], response: list[int]) -> Sample:
    """Each token's kept set is itself."""
    n, index = len(response), next(INDEX)
    made = Sample(index=index, group_id=index, sequence=Tokens.context(prompt), prompt_length=len(prompt))
    sets = {"top_p_token_ids": response, "top_p_token_offsets": list(range(n + 1))}
    made.append_response_tokens(tokens=response, log_probs=[-1.0] * n, meta_info=sets)
    return made


INDEX = count()


def packed_alone(*samples: Sample):
    groups = [Group(i, Prompt(id=str(i), messages=""), [sample]) for i, sample in enumerate(samples)]
    batch = make_batch(groups, num_updates=1, max_response_tokens=8, temperature=1.0)
    (packed,) = pack(batch, range(len(samples)), max_tokens=100)
    return packed


def test_set_of_a_token_goes_to_the_row_that_predicts_it():
    # slime's rows are {2: [13], 3: [14], 5: [21], 6: [22], 7: [23]}: it feeds the last token of a sample too
    packed = packed_alone(grown([10, 11, 12], [13, 14]), grown([20], [21, 22, 23]))
    spans = np.split(packed.kept.ids, packed.kept.offsets[1:-1])
    at = dict(zip(packed.predecessors.tolist(), [span.tolist() for span in spans], strict=True))
    assert at == {2: [13], 3: [14], 4: [21], 5: [22], 6: [23]}


def test_tool_tokens_have_empty_sets_and_are_not_scored():
    sample = grown([1, 2], [3, 4])
    sample.append_response_tokens(tokens=[7, 8], trainable=False)
    later = {"top_p_token_ids": [5, 6], "top_p_token_offsets": [0, 2]}
    sample.append_response_tokens(tokens=[5], log_probs=[-1.0], meta_info=later)
    assert sample.extras["top_p_token_offsets"].tolist() == [0, 1, 2, 2, 2, 4]
    packed = packed_alone(sample)
    assert packed.targets.tolist() == [3, 4, 5]
    assert (packed.kept.ids.tolist(), packed.kept.lengths.tolist()) == ([3, 4, 5, 6], [1, 1, 2])


def test_batch_without_sets_has_no_column_of_them():
    sample = Sample(index=0, group_id=0, sequence=Tokens.context([1]), prompt_length=1)
    sample.append_response_tokens(tokens=[2], log_probs=[-1.0])
    assert packed_alone(sample).kept is None


def test_samples_with_and_without_sets_may_share_a_batch():
    free = Sample(index=99, group_id=99, sequence=Tokens.context([1]), prompt_length=1)
    free.append_response_tokens(tokens=[2, 3], log_probs=[-1.0, -1.0])
    packed = packed_alone(grown([10], [13]), free)
    assert (packed.kept.ids.tolist(), packed.kept.lengths.tolist()) == ([13], [1, 0, 0])


def test_end_of_turn_is_trained_even_when_it_is_the_padding_id_too():
    """TRL#6357, TRL#3200: with pad = eos = 0 a mask by id never teaches the model to stop."""
    packed = packed_alone(grown([1, 2, 2, 42], [3, 5, 0]), grown([1], [0]))
    assert packed.targets.tolist() == [3, 5, 0, 0]


def test_first_response_token_is_trained():
    """verl#3287: a mask of [:-1] instead of [1:] loses it."""
    packed = packed_alone(grown([1, 2, 42], [3, 5]))
    assert (packed.targets[0], packed.ids[packed.predecessors[0]]) == (3, 42)
