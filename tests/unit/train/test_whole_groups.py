"""Pairs lie in one micro-batch each, and an update is the same however it is divided into micro-batches."""

import numpy as np
import pytest
import torch
from fresh import fresh

from strop.algo.batch import make_batch
from strop.algo.open import open_given
from strop.config.algo import Algo
from strop.config.tree import Optim, Train
from strop.runtime.compute import Compute
from strop.sample import Group, Prompt, Role, Sample
from strop.tokens import Tokens
from strop.train.local import LocalTrainer, Models
from strop.train.packing import pack


def pairs(num=8, seed=0):
    """Pairs of a common prompt; turns of a user within some responses are not trained."""
    rng, groups = np.random.default_rng(seed), []
    for number in range(num):
        prompt, samples = rng.integers(0, 256, 4 + number % 3), []
        for place, role in enumerate((Role.CHOSEN, Role.REJECTED)):
            said = rng.integers(0, 256, int(rng.integers(2, 9)))
            mask = np.ones(len(said), bool)
            mask[1:2] = len(said) < 5
            sequence = Tokens.given([*prompt, *said], [*np.zeros(len(prompt), bool), *mask])
            samples.append(
                Sample(
                    index=2 * number + place,
                    group_id=number,
                    role=role.value,
                    sequence=sequence,
                    prompt_length=len(prompt),
                )
            )
        groups.append(Group(number, Prompt(id=str(number), messages="a"), samples))
    return groups


def batch_of(groups):
    return make_batch(groups, num_updates=1, max_response_tokens=9, temperature=1.0)


def test_a_group_is_never_divided_and_every_trained_token_is_scored_once():
    for max_tokens in (1, 20, 40, 10**6):
        batch = batch_of(pairs())
        micro = pack(batch, range(16), max_tokens=max_tokens, whole_groups=True)
        assert all(len(packed.rows) % 2 == 0 for packed in micro), max_tokens
        columns = np.sort(np.concatenate([packed.columns for packed in micro]))
        np.testing.assert_array_equal(columns, np.flatnonzero(batch.mask), err_msg=str(max_tokens))
        assert max_tokens > 1 or [len(packed.rows) for packed in micro] == [2] * 8
        assert all(len(packed.ids) <= max_tokens or len(packed.rows) == 2 for packed in micro), max_tokens


def test_the_prompt_of_a_pair_is_computed_once():
    batch = batch_of(pairs(1))
    (packed,) = pack(batch, range(2), max_tokens=1, whole_groups=True)
    chosen, rejected = batch.samples
    fed = [s.response_length - 1 for s in (chosen, rejected)]
    assert len(packed.ids) == chosen.prompt_length + sum(fed)


@pytest.mark.parametrize("objective", ["nll", "dpo", "orpo"])
async def test_four_times_two_pairs_and_one_times_eight_are_one_update(objective, tiny_dir):
    """known-faults A8: losses that were not divided by the steps of accumulation."""
    algo, updated = open_given(Algo(objective=objective)), []
    for max_tokens in (10**6, 40):
        section = Train(optim=Optim(lr=1e-3, clip=1e9), max_tokens_per_device=max_tokens)
        models = Models(fresh(tiny_dir), fresh(tiny_dir) if algo.needs else None)
        trainer = LocalTrainer(models, section, algo, Compute(), total_updates=1)
        batch = batch_of(pairs())
        if algo.needs:
            batch.scored["ref"] = await trainer.score(batch, "ref") - 0.1
        algo.credit(batch)
        metrics = await trainer.step(batch)
        updated.append((metrics["train/loss"], metrics["train/grad_norm"], metrics))
    one, four = updated
    assert one[0] == pytest.approx(four[0], rel=1e-6)
    assert one[1] == pytest.approx(four[1], rel=1e-5)
    assert one[2].keys() == four[2].keys()
    assert "train/mismatch_k1" not in one[2], "nothing was sampled"
    assert torch.tensor(list(one[2].values())).isfinite().all()
