"""The local trainer: one update or several, what is not finite, and exact save and load."""

import numpy as np
import pytest
import torch
from fresh import fresh

from strop.algo.batch import Batch, make_batch
from strop.algo.policy import PolicyGradient
from strop.config.tree import Algo, Optim, Train
from strop.errors import NonFinite
from strop.nn.loading import CausalLM
from strop.runtime.compute import Compute
from strop.sample import Group, Prompt, Sample, Tokens
from strop.train.local import LocalTrainer, Models
from strop.train.optimizer import learning_rate


def batch_of(rewards: list[float], *, num_updates: int = 1, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    samples = []
    for i, reward in enumerate(rewards):
        sample = Sample(index=i, group_id=i // 2, sequence=Tokens.context([5, 6, 7]), prompt_length=3)
        n = int(rng.integers(2, 6))
        sample.append_response_tokens(tokens=rng.integers(0, 256, n).tolist(), log_probs=[-5.0] * n)
        sample.reward = reward
        samples.append(sample)
    groups = [
        Group(id=g, prompt=Prompt(id=str(g), messages=""), samples=samples[2 * g : 2 * g + 2])
        for g in range(len(samples) // 2)
    ]
    return make_batch(groups, num_updates=num_updates, max_response_tokens=8, temperature=1.0)


def trainer_of(model: CausalLM, *, num_updates: int = 1, **keys) -> LocalTrainer:
    optim = keys.pop("optim", Optim(lr=1e-3))
    algo_keys = {name: keys.pop(name) for name in ("kl_loss_coef", "aggregation") if name in keys}
    algorithm = PolicyGradient(Algo(**algo_keys), num_updates=num_updates)
    reference = fresh(model.source) if "ref" in algorithm.needs else None
    train = Train(optim=optim, **keys)
    return LocalTrainer(Models(model, reference), train, algorithm, Compute(), total_updates=10)


async def step(trainer: LocalTrainer, batch: Batch) -> dict[str, float]:
    for what in sorted(trainer._algorithm.needs):
        batch.scored[what] = await trainer.score(batch, what)
    trainer._algorithm.credit(batch)
    return await trainer.step(batch)


def copied(model: CausalLM) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(a[name], b[name]) for name in a)


async def test_groups_with_equal_rewards_give_no_gradient(tiny):
    before = copied(tiny)
    metrics = await step(trainer_of(tiny), batch_of([1.0, 1.0, 0.0, 0.0]))
    assert metrics["train/grad_norm"] == 0
    assert metrics["train/tokens"] == 0
    assert same(before, copied(tiny))


async def test_mismatch_is_measured_even_when_nothing_is_trained(tiny):
    metrics = await step(trainer_of(tiny), batch_of([1.0, 1.0, 0.0, 0.0]))
    assert metrics["train/train_rollout_logprob_abs_diff"] > 0


async def test_micro_batches_do_not_change_the_update(tiny_dir):
    results = []
    for budget in (10_000, 1):
        model = fresh(tiny_dir)
        await step(trainer_of(model, max_tokens_per_device=budget), batch_of([1.0, 0.0, 0.5, 0.0]))
        results.append(copied(model))
    for name, weights in results[0].items():
        torch.testing.assert_close(weights, results[1][name], rtol=0, atol=2e-5)


async def test_reused_old_logprobs_equal_scored_ones(tiny):
    trainer = trainer_of(tiny)
    batch = batch_of([1.0, 0.0])
    scored = await trainer.score(batch, "old")
    metrics = await step(trainer, batch)
    d = scored - batch.behavior
    assert metrics["train/train_rollout_logprob_abs_diff"] == pytest.approx(np.abs(d).mean(), abs=1e-5)


async def test_second_update_is_off_policy_by_the_first(tiny):
    metrics = await step(trainer_of(tiny, num_updates=2), batch_of([1.0, 0.0, 1.0, 0.0], num_updates=2))
    assert metrics["train/updates"] == 2
    assert metrics["train/ppo_kl"] != 0


async def test_kl_to_the_reference_is_zero_at_first_and_grows(tiny):
    trainer = trainer_of(tiny, kl_loss_coef=0.1, optim=Optim(lr=1e-2))
    first = await step(trainer, batch_of([1.0, 0.0]))
    second = await step(trainer, batch_of([1.0, 0.0]))
    assert first["train/kl_loss"] == pytest.approx(0, abs=1e-6)
    assert second["train/kl_loss"] > 1e-4


async def test_kl_trains_samples_whose_advantage_is_zero(tiny):
    metrics = await step(trainer_of(tiny, kl_loss_coef=0.1), batch_of([1.0, 1.0]))
    assert metrics["train/tokens"] > 0


def poisoned(model: CausalLM) -> None:
    """The next gradient is not finite, whatever the loss."""
    model.head_VD.register_hook(lambda grad: grad * float("nan"))


async def test_non_finite_gradient_stops_the_run_before_the_update(tiny):
    trainer, before = trainer_of(tiny), copied(tiny)
    poisoned(tiny)
    with pytest.raises(
        NonFinite, match=r"update 0: loss = .*, gradient norm = nan; the weights are those before"
    ):
        await step(trainer, batch_of([1.0, 0.0]))
    assert same(before, copied(tiny))


async def test_non_finite_gradient_can_be_skipped_and_is_counted(tiny):
    trainer, before = trainer_of(tiny, on_nan="skip"), copied(tiny)
    poisoned(tiny)
    metrics = await step(trainer, batch_of([1.0, 0.0]))
    assert metrics["train/skipped_updates"] == 1
    assert same(before, copied(tiny))


async def with_a_bad_old(trainer: LocalTrainer, bad: float) -> Batch:
    """Two updates, in the first of which the old log-prob of a trained token is not a number."""
    batch = batch_of([1.0, 0.0, 1.0, 0.0], num_updates=2)
    batch.scored["old"] = await trainer.score(batch, "old")
    trainer._algorithm.credit(batch)
    batch.scored["old"][1] = bad
    return batch


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
async def test_an_old_log_prob_that_is_not_finite_stops_the_run_by_its_name(tiny, bad):
    trainer, before = trainer_of(tiny, num_updates=2), copied(tiny)
    with pytest.raises(
        NonFinite,
        match=r"^update 0: old log-prob of 1 of \d+ trained tokens is not finite .* token 1 of .*; the "
        r"weights are those before it\. Lower train\.optim\.lr, or set train\.on_nan = 'skip'$",
    ):
        await trainer.step(await with_a_bad_old(trainer, bad))
    assert same(before, copied(tiny))


async def test_an_update_with_an_old_log_prob_that_is_not_finite_can_be_skipped(tiny):
    trainer, before = trainer_of(tiny, num_updates=2, on_nan="skip"), copied(tiny)
    metrics = await trainer.step(await with_a_bad_old(trainer, -np.inf))
    assert (metrics["train/skipped_updates"], metrics["train/updates"]) == (1, 1)
    assert np.isfinite(list(metrics.values())).all()
    assert not same(before, copied(tiny))


async def test_saved_and_loaded_trainer_goes_on_bit_for_bit(tiny_dir, tmp_path):
    straight = fresh(tiny_dir)
    one = trainer_of(straight, optim=Optim(lr=1e-3, warmup=3, schedule="linear", weight_decay=0.1))
    await step(one, batch_of([1.0, 0.0], seed=1))
    one.save(tmp_path)
    state = one.state()
    await step(one, batch_of([0.0, 1.0], seed=2))

    other = fresh(tiny_dir)
    two = trainer_of(other, optim=Optim(lr=1e-3, warmup=3, schedule="linear", weight_decay=0.1))
    two.load(tmp_path, state)
    await step(two, batch_of([0.0, 1.0], seed=2))
    assert same(copied(straight), copied(other))


async def test_saved_model_loads_in_transformers(tiny, tmp_path):
    from transformers import AutoModelForCausalLM

    trainer_of(tiny).save(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    assert same(copied(tiny), {name: p.detach() for name, p in again.named_parameters()})


async def test_bfloat16_computation_keeps_float32_weights(tiny):
    batch = batch_of([1.0, 0.0])
    exact = await trainer_of(tiny).score(batch, "old")
    half = trainer_of(tiny, dtype="bfloat16")
    rough = await half.score(batch, "old")
    assert 0 < np.abs(exact - rough).max() < 0.1
    await step(half, batch)
    assert all(p.dtype is torch.float32 for _, p in tiny.named_parameters())


def test_learning_rate_course():
    for schedule, expected in {
        "constant": [0.5, 1, 1, 1, 1, 1, 1],
        "linear": [0.5, 1, 1, 0.75, 0.5, 0.25, 0],
        "cosine": [0.5, 1, 1, 0.8535534, 0.5, 0.1464466, 0],
    }.items():
        section = Optim(lr=1.0, schedule=schedule, warmup=2)
        assert [learning_rate(section, update=u, total=6) for u in range(7)] == pytest.approx(expected), (
            schedule
        )
