"""Reward models: which state is scored, gradients that no split changes, what is kept, accuracy by subset."""

import json

import numpy as np
import pytest
import torch
from eager import of_transformers
from fresh import fresh

from strop.algo.batch import Batch, make_batch
from strop.algo.given import Outcomes
from strop.algo.scoring import MarkedScores, PairScores, RankedScores, open_objective
from strop.config.algo import Algo
from strop.config.offline import TARGET
from strop.config.reward_model import RewardModel
from strop.config.tree import Optim, Train
from strop.eval.given_outcomes import told
from strop.eval.given_scores import by_subset
from strop.nn.value_head import has_head
from strop.runtime.compute import Compute
from strop.sample import Group, Prompt, Sample, Tokens
from strop.train.local import Models
from strop.train.packing import pack
from strop.train.rewarding import RewardTrainer

END = 5
"""Of a turn, and what others pad with."""


def sample_of(rng, index: int, group: int, prompt: list[int]) -> Sample:
    """Two turns: the id that ends them is in the middle too."""
    turns = [rng.integers(10, 256, n).tolist() for n in rng.integers(1, 4, 2)]
    ids = [*prompt, *turns[0], END, END, *turns[1], END]
    mask = [place >= len(prompt) for place in range(len(ids))]
    sample = Sample(index=index, group_id=group, sequence=Tokens.given(ids, mask), prompt_length=len(prompt))
    sample.metadata = {"margin": 0.5, TARGET: float(rng.random())}
    return sample


def batch_of(*, size: int = 2, seed: int = 0, num_updates: int = 1) -> Batch:
    rng, groups = np.random.default_rng(seed), []
    for g in range(4):
        prompt = rng.integers(10, 256, 3 + g).tolist()
        samples = [sample_of(rng, size * g + i, g, prompt) for i in range(size)]
        groups.append(Group(g, Prompt(id=str(g), messages=""), samples))
    return make_batch(groups, num_updates=num_updates, max_response_tokens=1, temperature=1.0)


def trainer_of(model, section: Algo, *, max_tokens: int = 10_000, noise: float = 0.05) -> RewardTrainer:
    train = Train(optim=Optim(lr=1e-3), max_tokens_per_device=max_tokens)
    trainer = RewardTrainer(Models(model), train, open_objective(section), Compute(), total_updates=10)
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        trainer._head.weight_1D.copy_(torch.randn(trainer._head.weight_1D.shape, generator=draw) * noise)
    return trainer


SECTIONS = {
    "pairs": (2, Algo(objective="bradley_terry")),
    "pairs with a margin": (
        2,
        Algo(objective="bradley_terry", reward_model=RewardModel(centering=0.1, margin_field="margin")),
    ),
    "every token": (2, Algo(objective="bradley_terry", reward_model=RewardModel(per_token=True))),
    "lists": (3, Algo(objective="plackett_luce")),
    "numbers": (1, Algo(objective="regression")),
}


async def test_a_score_is_of_the_last_token_by_its_place(tiny, tiny_dir):
    """TRL#6357: a search for the padding id ends at the first end of a turn, where the two ids are one."""
    batch, trainer = batch_of(), trainer_of(tiny, SECTIONS["pairs"][1])
    score_N = await trainer.score(batch, "scores")
    model = of_transformers(tiny_dir)
    for row, sample in enumerate(batch.samples):
        with torch.no_grad():
            hidden = model.model(input_ids=torch.tensor([sample.tokens])).last_hidden_state[0, -1]
        expected = float(hidden @ trainer._head.weight_1D[0].detach())
        np.testing.assert_allclose(score_N[batch.tokens_of(row)], expected, atol=1e-5)


LATER = ("pairs", "numbers")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow if kind in LATER else ()) for kind in SECTIONS]
)
def test_a_reward_models_gradient_does_not_depend_on_micro_batches(tiny_dir, kind):
    size, section = SECTIONS[kind]
    found = []
    for budget in (10_000, 20, 1):
        model = fresh(tiny_dir)
        trainer, batch = trainer_of(model, section, max_tokens=budget), batch_of(size=size)
        update = trainer.differentiated(batch, list(range(4 * size)))
        num_micro = len(pack(batch, range(4 * size), max_tokens=budget, whole=True, whole_groups=True))
        assert num_micro == 1 if budget == 10_000 else num_micro > 1
        parameters = [*model.named_parameters(), *trainer._head.named_parameters()]
        found.append((update.loss, update.parts, {n: p.grad for n, p in parameters if p.grad is not None}))
    loss, parts, gradients = found[0]
    largest = max(float(gradient.abs().max()) for gradient in gradients.values())
    assert largest > 1e-3
    for split_loss, split_parts, split in found[1:]:
        assert split_loss == pytest.approx(loss, rel=1e-5)
        assert split_parts == pytest.approx(parts, rel=1e-5, abs=1e-6)
        assert max(float((gradients[n] - split[n]).abs().max()) for n in gradients) < 1e-5 * largest


def test_a_loss_is_the_mean_over_groups_of_their_own(tiny, tiny_dir):
    """Against transformers, padded, and the formulas as they are written."""
    batch = batch_of()
    trainer = trainer_of(tiny, SECTIONS["pairs with a margin"][1])
    model, head = of_transformers(tiny_dir), trainer._head.weight_1D[0].detach()
    length = max(len(s.tokens) for s in batch.samples)
    ids = torch.tensor([s.tokens + [END] * (length - len(s.tokens)) for s in batch.samples])
    last = torch.tensor([len(s.tokens) - 1 for s in batch.samples])
    score = model.model(input_ids=ids).last_hidden_state[torch.arange(len(ids)), last] @ head
    chosen, rejected = score[::2], score[1::2]
    loss = (-torch.log(torch.sigmoid(chosen - rejected - 0.5)) + 0.1 * (chosen + rejected) ** 2).mean()
    loss.backward()
    update = trainer.differentiated(batch, list(range(8)))
    assert update.loss == pytest.approx(float(loss.detach()), rel=1e-5)
    theirs = dict(model.named_parameters())
    for name, p in tiny.named_parameters():
        if p.grad is not None:
            torch.testing.assert_close(p.grad, theirs[name].grad, rtol=1e-4, atol=1e-6, msg=name)


def test_two_responses_that_were_cut_to_the_same_tokens_teach_nothing_and_stop_no_run(tiny):
    batch = batch_of()
    batch.samples[1].sequence = batch.samples[0].sequence
    batch = make_batch(
        [Group(0, Prompt(id="0", messages=""), batch.samples[:2])],
        num_updates=1,
        max_response_tokens=1,
        temperature=1.0,
    )
    trainer = trainer_of(tiny, SECTIONS["every token"][1])
    update = trainer.differentiated(batch, [0, 1])
    assert update.loss == pytest.approx(np.log(2))
    assert float(trainer._head.weight_1D.grad.abs().max()) < 1e-6


async def test_a_loaded_trainer_goes_on_bit_for_bit(tiny_dir, tmp_path):
    section = SECTIONS["pairs"][1]
    straight, resumed = (trainer_of(fresh(tiny_dir), section) for _ in range(2))
    await straight.step(batch_of(seed=1, num_updates=2))
    straight.save(tmp_path)
    resumed.load(tmp_path, json.loads(json.dumps(straight.state())))
    assert await straight.step(batch_of(seed=2)) == await resumed.step(batch_of(seed=2))
    ours, theirs = dict(straight.weights()), dict(resumed.weights())
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []


async def test_a_checkpoint_is_a_reward_model(tiny_dir, tmp_path):
    trainer = trainer_of(fresh(tiny_dir), SECTIONS["pairs"][1])
    await trainer.step(batch_of())
    trainer.save(tmp_path)
    assert has_head(tmp_path)
    again = RewardTrainer(
        Models(fresh(tmp_path)), Train(), open_objective(SECTIONS["pairs"][1]), Compute(), total_updates=1
    )
    batch = batch_of(seed=3)
    np.testing.assert_array_equal(await again.score(batch, "scores"), await trainer.score(batch, "scores"))


def test_a_reward_model_that_says_the_same_of_all_is_never_right():
    rng = np.random.default_rng(0)
    samples = [sample_of(rng, i, 0, [9]) for i in range(3)]
    pairs, lists = PairScores(Algo(objective="bradley_terry")), RankedScores()
    assert pairs.is_right(samples, np.array([1.0, 1.0])) == 0
    assert pairs.is_right(samples, np.array([1.0, 0.9])) == 1
    assert lists.is_right(samples, np.zeros(3)) == 0
    assert lists.is_right(samples, np.array([3.0, 1.0, 2.0])) == pytest.approx(2 / 3)
    samples[0].metadata[TARGET] = 0.25
    assert MarkedScores().is_right(samples[:1], np.array([0.75])) == -0.25


def test_accuracy_is_told_by_subset():
    groups = []
    for g, metadata in enumerate([{"subset": "chat"}, {"subset": "code"}, {"subset": "chat"}, {}]):
        prompt = Prompt(id=str(g), messages="", metadata=metadata)
        groups.append(Group(g, prompt, [Sample(index=g, group_id=g)]))
    right = [1.0, 0.0, 0.0, 1.0]
    outcomes = Outcomes(np.array(right), np.ones(4))
    line = told("held", groups, outcomes, by_subset(groups, right)).as_json()
    assert (line["mean"], line["subset/chat"], line["subset/code"]) == (0.5, 0.5, 0.0)
