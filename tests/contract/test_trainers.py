"""Every trainer keeps the seam's promises. A new one is a line in `TRAINERS`."""

import json
import math

import numpy as np
import pytest
import torch
from eager import of_transformers
from fresh import fresh
from safetensors.torch import load_file

from strop.algo.base import SCORES
from strop.algo.batch import make_batch
from strop.algo.policy import PolicyGradient
from strop.config.algo import Critic
from strop.config.tree import Algo, Lora, Optim, Train
from strop.nn.lora import Adapters
from strop.runtime.compute import Compute
from strop.sample import Group, Prompt, Sample, Status, Tokens
from strop.train.critic import open_critic
from strop.train.local import LocalTrainer, Models

ALGO = Algo(kl_loss_coef=0.05, normalize_std=False)
GAE = {"advantage": "gae", "kl_loss_coef": 0.05}
SECTION = Train(optim=Optim(lr=1e-3, weight_decay=0.1, warmup=3, schedule="linear"), max_tokens_per_device=40)
STATUSES = (Status.COMPLETED, Status.TRUNCATED)


def local(directory):
    model, reference = fresh(directory), fresh(directory)
    algorithm = PolicyGradient(ALGO, num_updates=2)
    return LocalTrainer(Models(model, reference), SECTION, algorithm, Compute(), total_updates=20)


def adapted(directory):
    model = fresh(directory)
    adapters = Adapters(model, Lora(rank=4, alpha=64), seed=5)
    algorithm = PolicyGradient(ALGO, num_updates=2)
    return LocalTrainer(Models(model, adapters=adapters), SECTION, algorithm, Compute(), total_updates=20)


def with_critic(directory, **keys):
    section = Algo(**GAE, critic=Critic(bootstrap=True, **keys))
    model, algorithm = fresh(directory), PolicyGradient(section, num_updates=2)
    critic = open_critic(model, None, section.critic, SECTION, total_updates=20)
    models = Models(model, fresh(directory), critic=critic)
    return LocalTrainer(models, SECTION, algorithm, Compute(), total_updates=20)


def with_shared_critic(directory):
    return with_critic(directory, shared=True)


TRAINERS = {
    "local": local,
    "local with adapters": adapted,
    "local with a critic": with_critic,
    "local with a shared critic": with_shared_critic,
}


SLOW = ("local with adapters", "local with a shared critic")
"""peft takes seconds to import; of both kinds of critic one is enough until all is run."""


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in TRAINERS]
)
def make(request, tiny_dir):
    """A trainer of the model in a directory, by default the tiny one."""
    return lambda directory=tiny_dir: TRAINERS[request.param](directory)


def drawn(rng, n):
    return Tokens.drawn(rng.integers(0, 256, n), np.full(n, -5.0), np.zeros(n))


def groups_of(num_groups=3, *, seed=0):
    """Pairs of samples of unequal length; every other one has tool tokens in its middle or at its end."""
    rng, groups = np.random.default_rng(seed), []
    for g in range(num_groups):
        prompt = Tokens.context(rng.integers(0, 256, 4 + g))
        samples = []
        for i in range(2):
            tool = Tokens.context(rng.integers(0, 256, 3 if i else 0))
            parts = [prompt, drawn(rng, 2 + g), tool, drawn(rng, int(rng.integers(0, 4)))]
            sequence = sum(parts, Tokens.context([]))
            sample = Sample(index=2 * g + i, group_id=g, sequence=sequence, prompt_length=len(prompt))
            sample.reward, sample.status = float(rng.random()), STATUSES[i]
            samples.append(sample)
        groups.append(Group(id=g, prompt=Prompt(id=str(g), messages=""), samples=samples))
    return groups


def batch_of(groups):
    return make_batch(groups, num_updates=2, max_response_tokens=16, temperature=0.8)


async def stepped(trainer, *, seed=0):
    """One whole step, as the loop takes it."""
    return await taken(trainer, batch_of(groups_of(seed=seed)))


async def taken(trainer, batch):
    algorithm = trainer._algorithm
    for what in [each for each in SCORES if each in algorithm.needs]:
        batch.scored[what] = await trainer.score(batch, what)
    algorithm.credit(batch)
    return await trainer.step(batch)


def copied(trainer):
    return {name: tensor.clone() for name, tensor in trainer.weights()}


def assert_equal(one, two):
    assert one.keys() == two.keys()
    assert [name for name in one if not torch.equal(one[name], two[name])] == []


@pytest.fixture(scope="module")
def plain(tiny_dir):
    """The tiny model as transformers has it."""
    return of_transformers(tiny_dir)


def plain_logp(model, sample, temperature):
    """Log-probs of the response by one forward of the model alone."""
    ids = torch.tensor([sample.tokens])
    with torch.no_grad():
        logp = torch.log_softmax(model(input_ids=ids).logits[0] / temperature, -1)
    at = np.arange(sample.prompt_length, len(sample.tokens))
    return logp[at - 1, ids[0, at]].numpy()


async def test_scores_are_in_the_order_of_the_batch_and_nan_where_nothing_was_sampled(make, plain):
    batch = batch_of(groups_of())
    expected = np.concatenate([plain_logp(plain, sample, 0.8) for sample in batch.samples])
    expected[np.isnan(batch.behavior)] = np.nan
    trainer = make()
    for what in ("old", "ref"):
        scores = await trainer.score(batch, what)
        assert (scores.shape, scores.dtype) == ((batch.num_tokens,), np.float32), what
        np.testing.assert_allclose(scores, expected, atol=1e-4, err_msg=what)


async def test_scores_of_a_sample_do_not_depend_on_the_others(make):
    trainer, groups = make(), groups_of()
    together = await trainer.score(batch_of(groups), "old")
    apart = [await trainer.score(batch_of([group]), "old") for group in groups]
    np.testing.assert_allclose(together, np.concatenate(apart), atol=1e-5)


async def test_scoring_changes_nothing(make):
    trainer = make()
    before, state = copied(trainer), trainer.state()
    first = await trainer.score(batch_of(groups_of()), "old")
    assert_equal(copied(trainer), before)
    assert trainer.state() == state
    np.testing.assert_array_equal(await trainer.score(batch_of(groups_of()), "old"), first)


async def test_a_step_gives_finite_metrics_of_its_station(make):
    metrics = await stepped(make())
    assert {"train/loss", "train/grad_norm", "train/lr", "train/updates", "train/tokens"} <= metrics.keys()
    assert all(name.startswith("train/") for name in metrics)
    assert all(isinstance(value, float) and math.isfinite(value) for value in metrics.values())


async def test_a_step_moves_the_policy_and_not_the_reference(make):
    trainer, batch = make(), batch_of(groups_of())
    before = {what: await trainer.score(batch, what) for what in ("old", "ref")}
    await stepped(trainer)
    after = {what: await trainer.score(batch, what) for what in ("old", "ref")}
    assert np.nanmax(np.abs(after["old"] - before["old"])) > 1e-4
    np.testing.assert_array_equal(after["ref"], before["ref"])


async def test_equal_trainers_take_equal_steps(make):
    one, two = make(), make()
    assert await stepped(one) == await stepped(two)
    assert_equal(copied(one), copied(two))


async def test_a_sample_of_nothing_but_tool_tokens_is_no_obstacle(make):
    groups = groups_of()
    sample = groups[0].samples[0]
    sample.sequence = sample.sequence.context(sample.tokens)
    metrics = await taken(make(), batch_of(groups))
    assert all(math.isfinite(value) for value in metrics.values())


def test_weights_have_the_names_and_shapes_of_the_checkpoint(make, tiny_dir):
    stored = load_file(tiny_dir / "model.safetensors")
    assert {n: t.shape for n, t in make().weights()} == {n: t.shape for n, t in stored.items()}
    assert_equal(copied(make()), stored)


async def test_saved_weights_are_those_that_are_given_away(make, tmp_path):
    trainer = make()
    await stepped(trainer)
    trainer.save(tmp_path)
    assert_equal(load_file(tmp_path / "model.safetensors"), copied(trainer))
    assert_equal(copied(make(tmp_path)), copied(trainer))


async def test_a_loaded_trainer_goes_on_bit_for_bit(make, tmp_path):
    straight, resumed = make(), make()
    await stepped(straight, seed=1)
    straight.save(tmp_path)
    resumed.load(tmp_path, json.loads(json.dumps(straight.state())))
    assert resumed.state() == straight.state()
    assert await stepped(straight, seed=2) == await stepped(resumed, seed=2)
    assert_equal(copied(straight), copied(resumed))


async def test_a_used_trainer_forgets_what_it_was_when_it_loads(make, tmp_path):
    fresh, used = make(), make()
    await stepped(fresh, seed=1)
    fresh.save(tmp_path)
    await stepped(used, seed=3)
    await stepped(used, seed=4)
    used.load(tmp_path, fresh.state())
    assert await stepped(used, seed=2) == await stepped(fresh, seed=2)
    assert_equal(copied(used), copied(fresh))
