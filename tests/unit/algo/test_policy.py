"""The policy-gradient algorithm: what it needs, how it credits, and a loss that no split can change."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.algo.aggregate import token_weights
from strop.algo.base import LossInputs
from strop.algo.batch import make_batch
from strop.algo.open import open_algorithm
from strop.algo.policy import PolicyGradient
from strop.config.tree import Algo
from strop.sample import Group, Prompt, Sample, Tokens

MODES = ["token_mean", "seq_mean_token_mean", "seq_mean_token_sum", "seq_sum_const"]
EVERYTHING = {"kl_loss_coef": 0.1, "entropy_coef": 0.01, "dual_clip": 3.0}


def grpo(*, num_updates=1, **options):
    return PolicyGradient(Algo(**options), num_updates=num_updates)


COLUMNS = [spec.name for spec in fields(LossInputs) if spec.name.endswith("_N")]


def random_inputs(n, *, seed=0, weight=None, dtype=torch.float64):
    """Of one sample a token."""
    draw = torch.Generator().manual_seed(seed)
    columns = {name: torch.randn(n, generator=draw, dtype=dtype) for name in COLUMNS}
    columns["weight_N"] = torch.full((n,), 1 / n, dtype=dtype) if weight is None else torch.tensor(weight)
    columns["logp_N"].requires_grad_()
    columns["entropy_N"].requires_grad_()
    return LossInputs(**columns, sums=lambda value_N: value_N)


def part_of(inputs, rows):
    return replace(inputs, **{name: getattr(inputs, name)[rows] for name in COLUMNS})


def step_batch(rewards, masks=None):
    """Two groups of two samples with two response tokens each."""
    masks = masks or [[True, True]] * len(rewards)
    samples = []
    for index, (reward, mask) in enumerate(zip(rewards, masks, strict=True)):
        drawn = Tokens.drawn([5, 6], [-1.0, -1.0], [0, 0])
        response = Tokens(drawn.ids, drawn.sampled, np.array(mask), drawn.behavior, drawn.versions)
        samples.append(
            Sample(
                index=index,
                group_id=index // 2,
                sequence=Tokens.context([1]) + response,
                prompt_length=1,
                reward=reward,
            )
        )
    groups = [Group(g, Prompt(id=str(g), messages=""), samples[2 * g : 2 * g + 2]) for g in range(2)]
    return make_batch(groups, num_updates=1, max_response_tokens=4, temperature=1.0)


def test_needs_only_the_log_probs_that_it_uses():
    for num_updates, kl_loss_coef, needs in (
        (1, 0.0, set()),
        (2, 0.0, {"old"}),
        (1, 0.1, {"ref"}),
        (4, 0.1, {"old", "ref"}),
    ):
        section = Algo(kl_loss_coef=kl_loss_coef)
        assert open_algorithm(section, num_updates=num_updates).needs == needs, needs


def test_credit_puts_the_advantage_of_a_sample_on_each_of_its_tokens():
    batch = step_batch([1.0, 0.0, 0.5, 0.5])
    grpo(normalize_std=False).credit(batch)
    assert batch.advantage.tolist() == [0.5, 0.5, -0.5, -0.5, 0, 0, 0, 0]


def test_group_with_equal_rewards_gives_no_gradient():
    batch = step_batch([0.1, 0.1, 0.1, 0.1])
    algorithm = grpo()
    algorithm.credit(batch)
    inputs = random_inputs(batch.num_tokens)
    inputs.advantage_N.copy_(torch.from_numpy(batch.advantage))
    algorithm.loss(inputs).total.backward()
    assert not inputs.logp_N.grad.any()


def test_samples_that_cannot_move_the_weights_are_named():
    batch = step_batch([1.0, 0.0, 0.5, 0.5], masks=[[True, True], [False, False], [True, True], [True, True]])
    algorithm = grpo()
    algorithm.credit(batch)
    assert algorithm.contributes(batch).tolist() == [True, False, False, False]


@pytest.mark.parametrize("option", ["kl_loss_coef", "entropy_coef"])
def test_kl_and_entropy_terms_make_every_trained_sample_contribute(option):
    batch = step_batch(
        [1.0, 0.0, 0.5, 0.5], masks=[[True, True], [False, False], [True, False], [True, True]]
    )
    algorithm = grpo(**{option: 0.1})
    algorithm.credit(batch)
    assert algorithm.contributes(batch).tolist() == [True, False, True, True]


def test_skipping_what_cannot_contribute_changes_no_gradient():
    for aggregation in MODES:
        batch = step_batch([1.0, 0.0, 0.5, 0.5])
        algorithm = grpo(aggregation=aggregation)
        algorithm.credit(batch)
        inputs = random_inputs(batch.num_tokens, weight=algorithm.weights(batch))
        inputs.advantage_N.copy_(torch.from_numpy(batch.advantage))
        whole = torch.autograd.grad(algorithm.loss(inputs).total, inputs.logp_N)[0]
        rows = torch.from_numpy(batch.spread(algorithm.contributes(batch).astype(np.float64)) > 0)
        kept = torch.autograd.grad(algorithm.loss(part_of(inputs, rows)).total, inputs.logp_N)[0]
        assert torch.equal(kept, whole), aggregation


@settings(max_examples=25, deadline=None)
@given(
    tokens=st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=30),
    aggregation=st.sampled_from(MODES),
    seed=st.integers(0, 99),
)
def test_loss_and_gradient_do_not_depend_on_the_split_into_microbatches(tokens, aggregation, seed):
    # verl#6957, verl#5417, prime-rl#2034: normalised per micro-batch, per rank, or per sequence
    mask, trajectory, microbatch = (np.array(column) for column in zip(*tokens, strict=True))
    weight = token_weights(
        aggregation,
        mask=mask,
        trajectory_of_token=trajectory,
        update_of_token=np.zeros_like(trajectory),
        constant=7,
    ).astype(np.float64)
    algorithm = grpo(**EVERYTHING)
    inputs = random_inputs(len(mask), seed=seed, weight=weight)
    whole = algorithm.loss(inputs)
    split = [algorithm.loss(part_of(inputs, torch.from_numpy(microbatch == m))) for m in range(4)]
    total = sum(loss.total for loss in split)
    assert total.item() == pytest.approx(whole.total.item(), abs=1e-9)
    for name, value in whole.parts.items():
        assert sum(loss.parts[name].item() for loss in split) == pytest.approx(value.item(), abs=1e-9)
    columns = (inputs.logp_N, inputs.entropy_N)
    of_whole, of_split = torch.autograd.grad(whole.total, columns), torch.autograd.grad(total, columns)
    for a, b in zip(of_whole, of_split, strict=True):
        assert torch.allclose(a, b, atol=1e-12)


@given(seed=st.integers(0, 99))
def test_loss_does_not_depend_on_the_order_of_tokens(seed):
    algorithm = grpo(**EVERYTHING)
    inputs = random_inputs(20, seed=seed)
    order = torch.randperm(20, generator=torch.Generator().manual_seed(seed))
    moved = algorithm.loss(part_of(inputs, order)).total.item()
    assert moved == pytest.approx(algorithm.loss(inputs).total.item(), abs=1e-9)


def test_gradient_of_a_one_weight_model_is_the_mean_of_its_inputs():
    x = torch.tensor([[k * scale for k in range(1, 9)] for scale in (1.0, 10.0, 100.0, 1000.0)]).flatten()
    weights = torch.from_numpy(
        token_weights(
            "seq_mean_token_mean",
            mask=np.ones(32, bool),
            trajectory_of_token=np.repeat(np.arange(4), 8),
            update_of_token=np.zeros(32, np.int64),
            constant=8,
        )
    )
    for size in (1, 3, 8, 16, 32):
        w = torch.ones(1, requires_grad=True)
        for rows in torch.arange(32).split(size):
            (weights[rows] * w * x[rows]).sum().backward()
        assert w.grad.item() == pytest.approx(1249.875, rel=1e-4)


def test_masked_nan_does_not_poison_the_loss():  # SkyRL#1635: 0 · NaN
    nan = torch.nan
    logp = torch.tensor([-1.0, nan], requires_grad=True)
    column = torch.tensor([-1.0, nan])
    weight = torch.tensor([1.0, 0.0])
    inputs = LossInputs(logp, column, column, column, column, column.neg(), weight, sums=lambda x: x)
    loss = grpo(**EVERYTHING).loss(inputs)
    loss.total.backward()
    assert torch.isfinite(loss.total)
    assert torch.isfinite(logp.grad).all()
    assert all(torch.isfinite(part) for part in loss.parts.values())


@pytest.mark.parametrize("n", [0, 3])
def test_loss_without_trained_tokens_is_a_zero_with_a_graph(n):  # a rank without one made the others hang
    inputs = random_inputs(n, weight=[0.0] * n)
    loss = grpo(**EVERYTHING).loss(inputs)
    loss.total.backward()
    assert loss.total.item() == 0
    assert not inputs.logp_N.grad.any()


def test_logged_kl_does_not_depend_on_its_coefficient():  # slime#2114: multiplied in place
    inputs = random_inputs(5)
    logged = {coef: grpo(kl_loss_coef=coef).loss(inputs).parts["kl_loss"].item() for coef in (0.01, 10.0)}
    assert logged[0.01] == logged[10.0]


def test_inputs_are_left_as_they_were():
    inputs, twin = random_inputs(5), random_inputs(5)
    grpo(**EVERYTHING).loss(inputs)
    assert all(torch.equal(getattr(inputs, name), getattr(twin, name)) for name in COLUMNS)


def test_every_option_changes_the_loss():
    options = {
        "dual_clip": 1.1,
        "clip_low": 0.01,
        "clip_high": 0.01,
        "kl_loss_coef": 0.5,
        "entropy_coef": 0.5,
    }
    for name, value in options.items():
        inputs = random_inputs(50)
        assert grpo(**{name: value}).loss(inputs).total.item() != grpo().loss(inputs).total.item(), name


def test_ratio_is_exactly_one_when_old_is_the_training_forward_itself():  # verl#3119
    logp = torch.tensor([-0.3, -2.7], requires_grad=True)
    advantage = torch.tensor([1.0, -2.0])
    old = [logp.detach()] * 4
    inputs = LossInputs(logp, *old, advantage, torch.full((2,), 0.5), sums=lambda x: x)
    loss = grpo().loss(inputs)
    loss.total.backward()
    assert loss.parts["pg_loss"].item() == 0.5
    assert loss.parts["ppo_kl"].item() == 0
    assert logp.grad.tolist() == [-0.5, 1.0]


def test_ppo_kl_is_old_minus_new():
    inputs = random_inputs(6)
    expected = (inputs.old_N - inputs.logp_N).mean().item()
    assert grpo().loss(inputs).parts["ppo_kl"].item() == pytest.approx(expected)


def test_total_adds_the_kl_and_rewards_entropy():
    loss = grpo(kl_loss_coef=0.1, entropy_coef=0.01).loss(random_inputs(6))
    part = {name: value.item() for name, value in loss.parts.items()}
    assert loss.total.item() == pytest.approx(
        part["pg_loss"] + 0.1 * part["kl_loss"] - 0.01 * part["entropy"]
    )


def test_entropy_bonus_pushes_entropy_up():
    inputs = random_inputs(6)
    grpo(entropy_coef=0.01).loss(inputs).total.backward()
    assert (inputs.entropy_N.grad < 0).all()
