"""The critic: which states its values are of, gradients that no split changes, warm-up, and what it keeps."""

import json

import numpy as np
import pytest
import torch
from eager import of_transformers
from fresh import fresh
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from strop.algo.base import SCORES
from strop.algo.batch import Batch, make_batch
from strop.algo.policy import PolicyGradient
from strop.config.algo import Algo, Critic
from strop.config.tree import Optim, Train
from strop.errors import NonFinite
from strop.nn.loading import CausalLM
from strop.nn.value_head import ValueHead, has_head, open_head
from strop.runtime.compute import Compute
from strop.sample import Group, Prompt, Sample, Status, Tokens
from strop.train.critic import FOLDER, OwnCritic, Scorer, SharedCritic, open_critic
from strop.train.local import LocalTrainer, Models
from strop.train.packing import pack


def sample_of(rng, index: int, group: int, prompt: list[int]) -> Sample:
    """Two turns with a tool's answer between them, and behind the second one in every other sample."""
    turn, last = (Tokens.drawn(rng.integers(0, 256, n), [-5.0] * n, [0] * n) for n in rng.integers(1, 5, 2))
    sequence = Tokens.context(prompt) + turn + Tokens.context([9, 8, 7]) + last
    if index % 2:
        sequence = sequence + Tokens.context([6, 5])
    sample = Sample(index=index, group_id=group, sequence=sequence, prompt_length=len(prompt))
    sample.reward, sample.status = float(rng.random()), Status.TRUNCATED if index % 3 else Status.COMPLETED
    return sample


def batch_of(*, seed: int = 0, num_updates: int = 1, temperature: float = 1.0) -> Batch:
    rng = np.random.default_rng(seed)
    groups = []
    for g in range(3):
        prompt = rng.integers(0, 256, 4 + g).tolist()
        samples = [sample_of(rng, 2 * g + i, g, prompt) for i in range(2)]
        groups.append(Group(g, Prompt(id=str(g), messages=""), samples))
    return make_batch(groups, num_updates=num_updates, max_response_tokens=32, temperature=temperature)


def random_head(model: CausalLM, seed: int = 0) -> ValueHead:
    head = open_head(model)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for _, p in head.named_parameters():
            p.copy_(torch.randn(p.shape, generator=draw) / 10)
    return head


@torch.no_grad()
def plain_values(directory, head: ValueHead, batch: Batch) -> list[np.ndarray]:
    """After each token of each sample, by the model alone."""
    model = of_transformers(directory).model
    states = [model(input_ids=torch.tensor([s.tokens])).last_hidden_state[0] for s in batch.samples]
    return [(hidden_TD @ head.weight_1D[0] + head.bias_1).numpy() for hidden_TD in states]


def own_critic(model: CausalLM, *, max_tokens: int = 10_000, **keys) -> OwnCritic:
    train = Train(optim=Optim(lr=1e-2), max_tokens_per_device=max_tokens)
    return OwnCritic(model, random_head(model), Critic(**keys), train, total_updates=10)


def trainer_of(
    model: CausalLM, *, max_tokens: int = 10_000, lambd: float = 0.95, num_updates: int = 1, **keys
) -> LocalTrainer:
    section = Algo(advantage="gae", whiten="bessel", lambd=lambd, critic=Critic(**keys))
    train = Train(optim=Optim(lr=1e-3), max_tokens_per_device=max_tokens)
    critic = open_critic(model, None, section.critic, train, total_updates=10)
    algorithm = PolicyGradient(section, num_updates=num_updates)
    return LocalTrainer(Models(model, critic=critic), train, algorithm, Compute(), total_updates=10)


async def step(trainer: LocalTrainer, batch: Batch) -> dict[str, float]:
    for what in [each for each in SCORES if each in trainer._algorithm.needs]:
        batch.scored[what] = await trainer.score(batch, what)
    trainer._algorithm.credit(batch)
    return await trainer.step(batch)


def copied(trainer: LocalTrainer) -> dict[str, torch.Tensor]:
    return {name: p.clone() for name, p in trainer.weights()}


def test_a_value_is_of_the_state_before_its_token(tiny, tiny_dir):
    """verl#50, #1440, #1850: values shifted by one, or that of the end zeroed."""
    head, batch = random_head(tiny), batch_of()
    plain = plain_values(tiny_dir, head, batch)
    for max_tokens in (10_000, 1):
        found = Scorer(tiny, head, Train(max_tokens_per_device=max_tokens)).values(batch)
        for row, sample in enumerate(batch.samples):
            sampled = sample.sequence.sampled[sample.prompt_length :]
            expected = np.where(sampled, plain[row][sample.prompt_length - 1 : -1], np.nan)
            np.testing.assert_allclose(
                found[batch.tokens_of(row)], expected, atol=1e-5, err_msg=f"{max_tokens=}"
            )


def test_a_next_value_is_of_the_state_after_the_last_token(tiny, tiny_dir):
    head, batch = random_head(tiny), batch_of()
    plain = plain_values(tiny_dir, head, batch)
    assert 0 < batch.truncated.sum() < 6
    for max_tokens in (10_000, 1):
        found = Scorer(tiny, head, Train(max_tokens_per_device=max_tokens)).next_values(batch)
        for row in range(len(batch.samples)):
            after = plain[row][-1] if batch.truncated[row] else 0.0
            np.testing.assert_allclose(
                found[batch.tokens_of(row)], after, atol=1e-5, err_msg=f"{max_tokens=}"
            )


def test_values_are_not_divided_by_the_temperature(tiny):
    scorer = Scorer(tiny, random_head(tiny), Train())
    np.testing.assert_array_equal(
        scorer.values(batch_of(temperature=0.5)), scorer.values(batch_of(temperature=1.0))
    )


def credited(critic: OwnCritic, *, seed: int, aggregation: str = "token_mean") -> tuple[Batch, np.ndarray]:
    """A batch with values that the critic has moved away from since, and its weights."""
    batch, algorithm = (
        batch_of(seed=seed),
        PolicyGradient(Algo(advantage="gae", aggregation=aggregation), num_updates=1),
    )
    values = critic.score(batch, "values")
    batch.scored["values"] = values + np.random.default_rng(seed).normal(0, 0.3, len(values)).astype("f4")
    algorithm.credit(batch)
    return batch, algorithm.weights(batch)


@settings(max_examples=4, deadline=None)
@given(
    seed=st.integers(0, 1000),
    max_tokens=st.sampled_from([40, 20, 1]),
    aggregation=st.sampled_from(["token_mean", "seq_mean_token_mean", "seq_mean_token_sum"]),
)
def test_the_critics_gradient_does_not_depend_on_micro_batches(tiny_dir, seed, max_tokens, aggregation):
    """verl#6957: 0.515, 1.055 and 2.094 for one, two and four micro-batches."""
    found = []
    for budget in (10_000, max_tokens):
        model = fresh(tiny_dir)
        critic = own_critic(model, max_tokens=budget)
        batch, weights = credited(critic, seed=seed, aggregation=aggregation)
        update = critic.differentiated(batch, list(range(6)), weights)
        num_micro = len(pack(batch, range(6), max_tokens=budget))
        assert num_micro == 1 if budget == 10_000 else num_micro > 1
        parameters = [*model.named_parameters(), *critic._head.named_parameters()]
        found.append((update.loss, {n: p.grad for n, p in parameters if p.grad is not None}))
    (loss, gradients), (split_loss, split) = found
    assert split_loss == pytest.approx(loss, rel=1e-5)
    largest = max(float(gradient.abs().max()) for gradient in gradients.values())
    assert largest > 1e-3
    assert gradients.keys() == split.keys()
    assert max(float((gradients[n] - split[n]).abs().max()) for n in split) < 1e-5 * largest


@pytest.mark.parametrize("shared", [False, True])
async def test_micro_batches_do_not_change_a_step(tiny_dir, shared):
    metrics = []
    for budget in (10_000, 20):
        trainer = trainer_of(fresh(tiny_dir), max_tokens=budget, shared=shared)
        metrics.append(await step(trainer, batch_of()))
    for name in ("train/value_loss", "train/loss", "train/grad_norm", "train/value_clip_frac"):
        assert metrics[1][name] == pytest.approx(metrics[0][name], rel=1e-4, abs=1e-6), name


async def test_a_shared_trunk_learns_both_losses(tiny_dir):
    """The gradient is that of policy loss + coef · value loss: it is linear in the coefficient."""
    norms = {}
    for coef in (1e-9, 1.0, 2.0):
        batch = batch_of()
        trainer = trainer_of(fresh(tiny_dir), shared=True, coef=coef)
        norms[coef] = await step(trainer, batch)
    assert norms[2.0]["train/loss"] - norms[1e-9]["train/loss"] == pytest.approx(
        2 * (norms[1.0]["train/loss"] - norms[1e-9]["train/loss"]), rel=1e-5
    )
    assert norms[1.0]["train/value_loss"] == pytest.approx(norms[2.0]["train/value_loss"])
    assert norms[1e-9]["train/grad_norm"] < norms[1.0]["train/grad_norm"] < norms[2.0]["train/grad_norm"]


async def test_a_shared_critic_learns_where_the_policy_has_nothing_to(tiny_dir):
    """Samples whose advantage is 0 are left out of a policy's pass, not of one that learns values too."""
    batch = batch_of()
    for sample in batch.samples:
        sample.reward = 1.0
    trainer = trainer_of(fresh(tiny_dir), shared=True, lambd=1.0)
    metrics = await step(trainer, batch)
    assert not batch.advantage.any()
    assert metrics["train/value_loss"] == pytest.approx(0.5)


async def test_critic_only_steps_leave_the_policy_as_it_is(tiny):
    trainer = trainer_of(tiny, warmup_steps=2)
    begin = copied(trainer)
    moved = []
    for seed in range(3):
        metrics = await step(trainer, batch_of(seed=seed))
        moved.append(any(not torch.equal(begin[name], p) for name, p in trainer.weights()))
        assert metrics["train/updates"] == (seed == 2)
        assert metrics["train/critic_grad_norm"] > 0
        assert metrics["train/tokens"] > 0
        assert "train/train_rollout_logprob_abs_diff" in metrics
    assert moved == [False, False, True]


async def test_critic_only_steps_are_counted_across_a_resume(tiny_dir, tmp_path):
    one = trainer_of(fresh(tiny_dir), warmup_steps=2)
    await step(one, batch_of())
    one.save(tmp_path)
    two = trainer_of(fresh(tiny_dir), warmup_steps=2)
    two.load(tmp_path, json.loads(json.dumps(one.state())))
    assert (await step(two, batch_of(seed=1)))["train/updates"] == 0
    assert (await step(two, batch_of(seed=2)))["train/updates"] == 1


async def test_a_critic_is_saved_as_a_model_with_a_head_and_begins_a_further_run(tiny, tiny_dir, tmp_path):
    trainer = trainer_of(tiny)
    await step(trainer, batch_of())
    trainer.save(tmp_path)
    assert has_head(tmp_path / FOLDER)
    assert not has_head(tmp_path)
    again = open_critic(fresh(tiny_dir), tmp_path / FOLDER, Critic(), Train(), total_updates=1)
    batch = batch_of(seed=3)
    np.testing.assert_array_equal(again.score(batch, "values"), await trainer.score(batch, "values"))


async def test_a_shared_head_lies_beside_the_policy(tiny, tiny_dir, tmp_path):
    trainer = trainer_of(tiny, shared=True)
    await step(trainer, batch_of())
    trainer.save(tmp_path)
    assert has_head(tmp_path)
    assert (
        load_file(tmp_path / "model.safetensors").keys() == load_file(tiny_dir / "model.safetensors").keys()
    )
    assert isinstance(trainer._critic, SharedCritic)
    assert torch.equal(open_head(fresh(tmp_path)).weight_1D, trainer._critic.head.weight_1D)


async def test_a_critic_that_is_not_finite_stops_the_run_before_its_update(tiny):
    trainer = trainer_of(tiny)
    batch = batch_of()
    trainer._critic._head.weight_1D.register_hook(lambda grad: grad * float("nan"))
    with pytest.raises(NonFinite, match=r"update 0 of the critic: .* Lower algo\.critic\.lr, or set"):
        await step(trainer, batch)


async def test_the_critics_first_advantages_are_the_returns(tiny):
    """A head begins as 0, and so do all values."""
    trainer, batch = trainer_of(tiny), batch_of()
    metrics = await step(trainer, batch)
    assert metrics["train/value_mean"] == 0
    assert metrics["train/explained_variance"] == pytest.approx(0, abs=1e-6)
