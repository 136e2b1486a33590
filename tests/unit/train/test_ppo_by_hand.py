"""PPO with a critic against two programs that share no line with it: plain PyTorch with padded tensors and a
loop for GAE, and the true values of a small decision process.
"""

from itertools import product

import numpy as np
import pytest
import torch
from eager import of_transformers
from fresh import fresh
from torch import nn

from strop.algo.base import SCORES
from strop.algo.batch import Batch, make_batch
from strop.algo.policy import PolicyGradient
from strop.config.algo import Algo, Critic
from strop.config.tree import Optim, Train
from strop.runtime.compute import Compute
from strop.sample import Group, Prompt, Sample, Tokens
from strop.train.critic import open_critic
from strop.train.local import LocalTrainer, Models

LR, CRITIC_LR, EPS, CLIP = 1e-3, 2e-3, 1e-3, 0.2
"""A large epsilon: Adam's first steps would otherwise turn rounding in a tiny gradient into a whole step."""


def batch_of(*, num_updates: int) -> Batch:
    rng = np.random.default_rng(0)
    samples = []
    for i in range(4):
        prompt, n = rng.integers(0, 256, 3 + i // 2), int(rng.integers(2, 6))
        drawn = Tokens.drawn(rng.integers(0, 256, n), rng.normal(-5.5, 0.1, n), [0] * n)
        sample = Sample(index=i, group_id=i, sequence=Tokens.context(prompt) + drawn)
        sample.prompt_length, sample.reward = len(prompt), float(rng.random())
        samples.append(sample)
    groups = [Group(s.index, Prompt(id=str(s.index), messages=""), [s]) for s in samples]
    return make_batch(groups, num_updates=num_updates, max_response_tokens=8, temperature=1.0)


class Plain:
    """PPO on padded tensors: [B, T] of B samples, T tokens."""

    def __init__(self, directory, batch: Batch) -> None:
        self.samples, self.num_updates = batch.samples, batch.num_updates
        self.policy, self.trunk = of_transformers(directory), of_transformers(directory)
        self.head = nn.Linear(self.trunk.config.hidden_size, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        self.ids = torch.zeros(len(self.samples), max(len(s.tokens) for s in self.samples), dtype=torch.long)
        self.mask = torch.zeros(self.ids.shape[0], self.ids.shape[1] - 1)
        for b, sample in enumerate(self.samples):
            self.ids[b, : len(sample.tokens)] = torch.tensor(sample.tokens)
            self.mask[b, sample.prompt_length - 1 : len(sample.tokens) - 1] = 1
        self.trained = [list(self.policy.parameters())]
        self.trained.append([*self.trunk.model.parameters(), *self.head.parameters()])
        settings = {"betas": (0.9, 0.98), "eps": EPS, "weight_decay": 0.0}
        rates = (LR, CRITIC_LR)
        self.optimizers = [
            torch.optim.AdamW(weights, lr=lr, **settings)
            for weights, lr in zip(self.trained, rates, strict=True)
        ]

    def logps(self):
        logits = self.policy(input_ids=self.ids).logits[:, :-1]
        return torch.log_softmax(logits, -1).gather(2, self.ids[:, 1:, None])[..., 0]

    def values(self):
        return self.head(self.trunk.model(input_ids=self.ids).last_hidden_state)[:, :-1, 0]

    def advantages(self, v):
        advantage = torch.zeros_like(v)
        for b, sample in enumerate(self.samples):
            running, next_value, last = 0.0, 0.0, len(sample.tokens) - 2
            for t in range(last, sample.prompt_length - 2, -1):
                delta = (sample.reward if t == last else 0.0) + next_value - v[b, t]
                running = delta + 0.95 * running
                advantage[b, t], next_value = running, v[b, t]
        return advantage

    def step(self) -> list[tuple[float, float]]:
        with torch.no_grad():
            old, v = self.logps(), self.values()
        advantage = self.advantages(v)
        returns, known = advantage + v, advantage[self.mask > 0]
        white = (advantage - known.mean()) / (known.var(unbiased=True) + 1e-8).sqrt()
        losses = []
        for part in torch.arange(len(self.ids)).chunk(self.num_updates):
            ratio, a = (self.logps()[part] - old[part]).exp(), white[part]
            pg = torch.maximum(-ratio * a, -ratio.clamp(1 - CLIP, 1 + CLIP) * a)
            new = self.values()[part]
            near = v[part] + (new - v[part]).clamp(-CLIP, CLIP)
            vl = torch.maximum((new - returns[part]) ** 2, (near - returns[part]) ** 2) / 2
            here = self.mask[part]
            both = [(loss * here).sum() / here.sum() for loss in (pg, vl)]
            for optimizer, loss, weights in zip(self.optimizers, both, self.trained, strict=True):
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_([p for p in weights if p.grad is not None], 1.0)
                optimizer.step()
            losses.append(tuple(float(loss.detach()) for loss in both))
        return losses


@pytest.mark.parametrize("num_updates", [pytest.param(1, marks=pytest.mark.slow), 2])
async def test_ppo_takes_the_steps_of_an_independent_program(tiny_dir, num_updates):
    model = fresh(tiny_dir)
    section = Algo(advantage="gae", whiten="bessel", clip_high=CLIP, critic=Critic(lr=CRITIC_LR))
    train = Train(optim=Optim(lr=LR, eps=EPS), max_tokens_per_device=15)
    critic = open_critic(model, None, section.critic, train, total_updates=10)
    algorithm = PolicyGradient(section, num_updates=num_updates)
    trainer = LocalTrainer(Models(model, critic=critic), train, algorithm, Compute(), total_updates=10)
    for _ in range(3):
        batch = batch_of(num_updates=num_updates)
        for what in [each for each in SCORES if each in algorithm.needs]:
            batch.scored[what] = await trainer.score(batch, what)
        algorithm.credit(batch)
        metrics = await trainer.step(batch)
    plain = Plain(tiny_dir, batch_of(num_updates=num_updates))
    last = [plain.step() for _ in range(3)][-1]
    began = dict(fresh(tiny_dir).named_parameters())
    moved = max(float((p - began[n]).abs().max().detach()) for n, p in model.named_parameters())
    assert moved > 1e-3
    assert metrics["train/pg_loss"] == pytest.approx(np.mean([pg for pg, _ in last]), abs=1e-5)
    assert metrics["train/value_loss"] == pytest.approx(np.mean([vl for _, vl in last]), abs=1e-6)
    for ours, theirs in ((model, plain.policy), (critic._model, plain.trunk)):
        of_theirs = dict(theirs.named_parameters())
        for name, p in ours.named_parameters():
            torch.testing.assert_close(p, of_theirs[name], rtol=0, atol=1e-6, msg=name)


ACTIONS = (65, 66)
PROMPTS = (48, 49, 50)


def worth(prompt: int, first: int, second: int) -> float:
    """The reward of an episode of two actions."""
    return (prompt - 48) / 2 + (first == 66) - 0.5 * (second == first)


def every_episode() -> Batch:
    """Each as often as a policy that tosses a coin twice draws it."""
    samples = []
    for i, (prompt, first, second) in enumerate(product(PROMPTS, ACTIONS, ACTIONS)):
        sequence = Tokens.context([prompt]) + Tokens.drawn([first, second], [np.log(0.5)] * 2, [0, 0])
        sample = Sample(index=i, group_id=i // 4, sequence=sequence, prompt_length=1)
        sample.reward = worth(prompt, first, second)
        samples.append(sample)
    groups = [Group(g, Prompt(id=str(g), messages=""), samples[4 * g : 4 * g + 4]) for g in range(3)]
    return make_batch(groups, num_updates=1, max_response_tokens=2, temperature=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("lambd", [1.0, 0.5, 0.0])
def test_values_become_the_true_ones_of_a_decision_process(tiny_dir, lambd):
    """Before the first action the mean over both; before the second one over those that may follow: whatever
    λ, since GAE's returns are the true ones where the values are."""
    model = fresh(tiny_dir)
    section = Algo(advantage="gae", lambd=lambd, critic=Critic(lr=3e-3, clip=None))
    train = Train(optim=Optim(schedule="linear"))
    critic = open_critic(model, None, section.critic, train, total_updates=300)
    algorithm = PolicyGradient(section, num_updates=1)
    batch = every_episode()
    for _ in range(300):
        batch.scored["values"] = critic.score(batch, "values")
        algorithm.credit(batch)
        critic.step(batch, algorithm.weights(batch))
    expected = []
    for prompt, first, _ in product(PROMPTS, ACTIONS, ACTIONS):
        after = np.mean([worth(prompt, first, second) for second in ACTIONS])
        before = np.mean([worth(prompt, *both) for both in product(ACTIONS, ACTIONS)])
        expected += [before, after]
    np.testing.assert_allclose(critic.score(batch, "values"), expected, atol=0.03)
