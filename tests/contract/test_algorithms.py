"""Every algorithm keeps the seam's promises. A new one, or a new setting, is a line in `ALGORITHMS`."""

import pickle
from dataclasses import fields, replace
from functools import cache
from itertools import product

import numpy as np
import pytest
import torch
from cases import case

from strop.algo.base import LOG_PROBS, LossInputs
from strop.algo.batch import make_batch
from strop.algo.open import open_algorithm
from strop.algo.sequence import sums_by_sample
from strop.config.algo import Algo, Correction
from strop.config.teacher import Teacher
from strop.sample import Group, Prompt, Sample, Status, Tokens

NUM_UPDATES = 2
VALUES = {"teacher": -1.3}
"""Of scored log-probs; others are −1.1."""
COLUMNS = [spec.name for spec in fields(LossInputs) if spec.name.endswith("_N")]
ALGORITHMS = {
    "grpo": Algo(),
    "grpo of the paper": Algo(aggregation="seq_mean_token_mean", clip_high=0.2, kl_loss_coef=0.04),
    "dr. grpo": Algo(normalize_std=False, aggregation="seq_sum_const"),
    "sums": Algo(aggregation="seq_mean_token_sum", dual_clip=3.0),
    "entropy bonus": Algo(entropy_coef=0.01),
    "everything": Algo(kl_loss_coef=0.1, kl_loss_type="low_var_kl", entropy_coef=0.01, dual_clip=2.0),
    "gspo": Algo(policy_loss="gspo", aggregation="seq_mean_token_mean", clip_low=3e-4, clip_high=4e-4),
    "gspo by token": Algo(policy_loss="gspo_token", aggregation="seq_mean_token_mean"),
    "cispo": Algo(policy_loss="cispo", clip_low=1.0),
    "rloo": Algo(advantage="leave_one_out"),
    "remax": Algo(advantage="greedy"),
    "ranks": Algo(advantage="rank"),
    "reinforce++": Algo(advantage="returns", whiten="bessel", gamma=0.9, kl_coef=0.1),
    "reinforce++ with a baseline": Algo(normalize_std=False, whiten="population", kl_coef=0.1, kl_type="k2"),
    "unbiased kl": Algo(kl_loss_coef=0.1, kl_unbiased=True),
    "behavior as old": Algo(old="behavior", kl_coef=0.1),
    "no truncated": Algo(mask_truncated=True),
    "tis": Algo(correction=Correction(type="tis")),
    "mis of samples": Algo(correction=Correction(type="mis", level="geometric", veto=1e-4)),
    "icepop, mean 1": Algo(correction=Correction(type="icepop", normalize=True)),
    "distillation": Algo(advantage="none", teacher=Teacher(model="t")),
    "distillation beside rewards": Algo(teacher=Teacher(model="t", coef=0.3), whiten="bessel"),
    "divergence": Algo(advantage="none", teacher=Teacher(model="t", form="full", coef=0.5)),
    "rejection": Algo(correction=Correction(reject="sequence"), opsm_delta=0.01),
}


def opened():
    """(name, algorithm) of each."""
    for name, section in ALGORITHMS.items():
        yield name, open_algorithm(section, num_updates=NUM_UPDATES)


def sample_of(index, rng, *, reward):
    """A reply with tool tokens in its middle, one untrained token, and now and then nothing trained."""
    n = int(rng.integers(1, 5))
    reply = Tokens.drawn(rng.integers(0, 256, n), np.full(n, -1.0), np.zeros(n))
    tool, last = Tokens.context([1, 2]), Tokens.drawn([3], [-1.0], [0])
    sequence = Tokens.context([9]) + reply + tool + (last if index % 3 else last.untrained())
    if index == 4:
        sequence = sequence.untrained()
    return Sample(index=index, group_id=index // 4, sequence=sequence, prompt_length=1, reward=reward)


@cache
def stored_batch(seed):
    """Pickled: each algorithm gets a copy of its own, sooner than it would be built."""
    rng = np.random.default_rng(seed)
    rewards = [1, 0, 0, 1, 0.5, 0.1, 0.9, 0.3, 1, 1, 1, 1, 0, 1, 0, 0]
    samples = [sample_of(i, rng, reward=float(reward)) for i, reward in enumerate(rewards)]
    samples[13].remove_sample = True
    samples[2].status = Status.TRUNCATED
    groups = [Group(g, Prompt(id=str(g), messages=""), samples[4 * g : 4 * g + 4]) for g in range(4)]
    for group in groups:
        group.greedy = [Sample(index=100 + group.id, group_id=group.id, reward=0.25)]
    return pickle.dumps(make_batch(groups, num_updates=NUM_UPDATES, max_response_tokens=12, temperature=1.0))


def batch_of(seed=0):
    """Four groups: two to learn from, one of equal rewards, one with a removed sample."""
    return pickle.loads(stored_batch(seed))


def credited(algorithm, seed=0, fill=0.0):
    batch = batch_of(seed)
    batch.advantage = np.full(batch.num_tokens, fill, np.float32)
    for what in sorted(algorithm.needs & {*LOG_PROBS, "teacher"}):
        batch.scored[what] = np.where(np.isnan(batch.behavior), np.nan, np.float32(VALUES.get(what, -1.1)))
    algorithm.credit(batch)
    return batch


def inputs_of(algorithm, batch, *, seed=0, rows=None):
    """Random log-probs beside the batch's columns; NaN where nothing was sampled, as the trainer gives."""
    draw = torch.Generator().manual_seed(seed)
    behavior = torch.from_numpy(batch.behavior)

    def column():
        return -torch.rand(batch.num_tokens, generator=draw) * 3 + 0 * behavior

    inputs = LossInputs(
        logp_N=column(),
        entropy_N=-column(),
        old_N=column(),
        ref_N=column(),
        behavior_N=behavior - 0.5,
        advantage_N=torch.from_numpy(batch.advantage),
        weight_N=torch.from_numpy(algorithm.weights(batch)),
        sums=sums_by_sample(torch.from_numpy(batch.sample_of_token)),
        sample_N=torch.from_numpy(batch.sample_of_token),
        columns={
            **{n: torch.from_numpy(c) for n, c in batch.scored.items() if n not in LOG_PROBS},
            **({"divergence": -column()} if "divergence" in algorithm.needs else {}),
        },
    )
    if rows is not None:
        samples = torch.from_numpy(batch.sample_of_token)[rows]
        inputs = replace(
            inputs,
            **{name: getattr(inputs, name)[rows] for name in COLUMNS},
            sums=sums_by_sample(samples),
            columns={name: column_N[rows] for name, column_N in inputs.columns.items()},
        )
    return replace(inputs, logp_N=inputs.logp_N.requires_grad_(), entropy_N=inputs.entropy_N.requires_grad_())


def gradients(algorithm, inputs):
    algorithm.loss(inputs).total.backward()
    return {"logp": inputs.logp_N.grad, "entropy": inputs.entropy_N.grad}


def test_needs_are_log_probs_that_the_trainer_can_score():
    for name, algorithm in opened():
        with case(name):
            assert algorithm.needs <= {"old", "ref", "teacher", "divergence", "greedy"}
            assert isinstance(algorithm.weighs_entropy, bool)


def test_several_updates_need_the_log_probs_of_the_start_of_the_step():
    for name, section in ALGORITHMS.items():
        with case(name):
            needs = open_algorithm(section, num_updates=2).needs
            assert ("old" in needs) == (section.old == "trainer")


def test_credit_fills_every_token_with_a_finite_number():
    for name, algorithm in opened():
        with case(name):
            batch = credited(algorithm, fill=np.nan)
            assert (batch.advantage.shape, batch.advantage.dtype) == ((batch.num_tokens,), np.float32)
            assert np.isfinite(batch.advantage).all()


def test_credit_of_the_same_step_is_the_same():
    for name, algorithm in opened():
        with case(name):
            one, two = credited(algorithm), credited(algorithm)
            np.testing.assert_array_equal(one.advantage, two.advantage)


def test_weights_are_where_the_mask_is_and_nowhere_else():
    for name, algorithm in opened():
        with case(name):
            batch = credited(algorithm)
            weights = algorithm.weights(batch)
            assert (weights.shape, weights.dtype) == ((batch.num_tokens,), np.float32)
            np.testing.assert_array_equal(weights > 0, batch.mask)


def test_weights_of_every_update_sum_to_what_the_aggregation_says():
    for name, algorithm in opened():
        with case(name):
            batch = credited(algorithm)
            weights, update = algorithm.weights(batch), batch.update[batch.sample_of_token]
            for index in range(NUM_UPDATES):
                tokens = batch.mask & (update == index)
                trajectories = len(np.unique(batch.trajectories[batch.sample_of_token[tokens]]))
                per_trajectory = tokens.sum() / trajectories
                expected = {
                    "token_mean": 1,
                    "seq_mean_token_mean": 1,
                    "seq_mean_token_sum": per_trajectory,
                    "seq_sum_const": per_trajectory / batch.max_response_tokens,
                }
                told = expected[ALGORITHMS[name].aggregation]
                assert weights[update == index].sum() == pytest.approx(told, rel=1e-5)


def test_samples_that_it_calls_silent_have_exactly_no_gradient():
    for name, algorithm in opened():
        with case(name):
            for seed in range(3):
                batch = credited(algorithm, seed)
                silent = ~algorithm.contributes(batch)[batch.sample_of_token]
                for gradient in gradients(algorithm, inputs_of(algorithm, batch, seed=seed)).values():
                    assert gradient is None or not gradient[torch.from_numpy(silent)].any(), f"seed {seed}"


def test_some_samples_contribute_and_untrained_ones_never():
    for name, algorithm in opened():
        with case(name):
            batch = credited(algorithm)
            contributes = algorithm.contributes(batch)
            assert (contributes.shape, contributes.dtype) == ((16,), np.bool_)
            assert contributes[[0, 1, 3]].all()
            assert not contributes[[4, 13]].any()


def test_untrained_tokens_have_exactly_no_gradient():
    for name, algorithm in opened():
        with case(name):
            batch = credited(algorithm)
            for gradient in gradients(algorithm, inputs_of(algorithm, batch)).values():
                assert gradient is None or not gradient[torch.from_numpy(~batch.mask)].any()


def test_entropy_has_a_gradient_if_and_only_if_it_is_weighed():
    for name, algorithm in opened():
        with case(name):
            gradient = gradients(algorithm, inputs_of(algorithm, credited(algorithm)))["entropy"]
            assert algorithm.weighs_entropy == (gradient is not None and bool(gradient.any()))


def test_loss_is_a_finite_scalar_in_the_graph_even_of_nothing():
    for (name, algorithm), rows in product(opened(), [slice(None), slice(0, 0)]):
        with case(name, rows):
            inputs = inputs_of(algorithm, credited(algorithm), rows=rows)
            loss = algorithm.loss(inputs)
            assert (loss.total.shape, loss.total.requires_grad) == ((), True)
            loss.total.backward()
            assert torch.isfinite(loss.total)
            assert torch.isfinite(inputs.logp_N.grad).all()


def test_parts_are_detached_numbers():
    for name, algorithm in opened():
        with case(name):
            parts = algorithm.loss(inputs_of(algorithm, credited(algorithm))).parts
            assert "pg_loss" in parts
            assert all(
                part.shape == () and not part.requires_grad and torch.isfinite(part)
                for part in parts.values()
            )


def test_no_split_changes_loss_parts_or_gradient():
    for (name, algorithm), num_parts in product(opened(), [2, 7]):
        with case(name, num_parts):
            batch = credited(algorithm)
            whole = inputs_of(algorithm, batch)
            loss = algorithm.loss(whole)
            loss.total.backward()
            total, parts = 0.0, dict.fromkeys(loss.parts, 0.0)
            order = np.random.default_rng(0).permutation(len(batch.samples))
            for samples in np.array_split(order, num_parts):
                rows = np.flatnonzero(np.isin(batch.sample_of_token, samples))
                some = inputs_of(algorithm, batch, rows=torch.from_numpy(rows))
                of_some = algorithm.loss(some)
                of_some.total.backward()
                total += float(of_some.total.detach())
                parts = {part: value + float(of_some.parts[part]) for part, value in parts.items()}
                torch.testing.assert_close(some.logp_N.grad, whole.logp_N.grad[torch.from_numpy(rows)])
            assert total == pytest.approx(float(loss.total.detach()), abs=1e-6)
            of_whole = {part: float(value) for part, value in loss.parts.items()}
            assert parts == pytest.approx(of_whole, abs=1e-6)


def test_loss_leaves_its_inputs_as_they_were():
    for name, algorithm in opened():
        with case(name):
            inputs = inputs_of(algorithm, credited(algorithm))
            before = {column: getattr(inputs, column).detach().clone() for column in COLUMNS}
            algorithm.loss(inputs)
            for column, was_N in before.items():
                is_N = getattr(inputs, column).detach()
                assert torch.equal(torch.nan_to_num(was_N), torch.nan_to_num(is_N)), column
