"""How long a step takes: a few tokens are drawn at the run's batch, one micro-batch is trained, and the rest
follows by proportion. The weights that move are this process's own."""

import asyncio
import time
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any

import numpy as np
import torch

from strop.algo.base import SCORES
from strop.algo.batch import Batch, make_batch
from strop.algo.open import open_algorithm
from strop.algo.policy import needs_of
from strop.config.algo_rules import has_own_critic
from strop.config.teacher import Teacher
from strop.config.tree import Config
from strop.engines.base import Request
from strop.forecast.load import Lengths, Load
from strop.nn.loading import load_model
from strop.nn.lora import Adapters
from strop.preflight import Prepared
from strop.rehearsal import Rehearsal, rehearsal
from strop.rollout.sampling import run_sampling
from strop.sample import Group, Prompt, Sample, Tokens
from strop.train.local import LocalTrainer, Models

_DRAWN = 8
"""Tokens of a sequence that are timed."""


@dataclass(frozen=True, slots=True)
class Speed:
    """As measured here and now, beside whatever else the machine does."""

    prefill_s: float
    """Until every row has its first token."""
    token_s: float
    """For one further token of every row."""
    train_tokens_per_s: float
    """Forward and backward, by tokens fed through the model."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds, in all and by what they go to."""

    rollout_s: float
    train_s: float
    eval_s: float
    """For one evaluation of every held-out set."""
    num_evals: int
    steps: int

    @property
    def step_s(self) -> float:
        return self.rollout_s + self.train_s

    @property
    def total_s(self) -> float:
        return self.steps * self.step_s + self.num_evals * self.eval_s

    def as_json(self) -> dict[str, Any]:
        """Seconds."""
        named = {"rollout_s": self.rollout_s, "train_s": self.train_s, "step_s": self.step_s}
        return {**named, "eval_s": self.eval_s, "evals": self.num_evals, "total_s": self.total_s}


def times_of(config: Config, lengths: Lengths, load: Load, speed: Speed) -> Times:
    """Of a run at this speed. Scoring by a reference, a teacher, a critic or for a second update is a third
    of a pass; a critic with a model of its own is trained in a second one."""
    needs = needs_of(config.algo, num_updates=config.train.updates_per_step)
    passes = 1 + has_own_critic(config) + len(needs & {*SCORES, "divergence"}) / 3
    tokens = load.update_tokens * config.train.updates_per_step * passes
    response = lengths.response
    drawing = load.rollout.waves * (speed.prefill_s + (response - 1) * speed.token_s)
    steps, every, evals = config.loop.steps, config.eval.every, 0.0
    for section in config.eval.datasets:
        rows = load.evals[section.name]
        budget = section.max_response_tokens or config.rollout.max_response_tokens
        tokens_each = min(response, budget) if lengths.is_measured else budget
        share = rows.rows / load.rollout.rows
        evals += rows.waves * share * (speed.prefill_s + (tokens_each - 1) * speed.token_s)
    return Times(
        rollout_s=drawing,
        train_s=tokens / speed.train_tokens_per_s,
        eval_s=evals,
        num_evals=(1 + (steps > 0) + (max(0, steps - 1) // every if every else 0)) if evals else 0,
        steps=steps,
    )


def measure(prepared: Prepared, lengths: Lengths, load: Load, prompts: list[Prompt]) -> Speed:
    """Takes as much memory as the run, and some seconds."""
    return asyncio.run(_measure(prepared, lengths, load, prompts))


async def _measure(prepared: Prepared, lengths: Lengths, load: Load, prompts: list[Prompt]) -> Speed:
    ids = [np.asarray(prepared.renderer.prompt(prompt), np.int32) for prompt in prompts]
    async with rehearsal(prepared) as stage:
        size = prepared.config.rollout.samples_per_prompt
        rows = list(islice((each for one in cycle(ids) for each in [one] * size), load.rollout.rows))
        drawn = min(_DRAWN, max(1, prepared.config.rollout.max_response_tokens - 1))
        await _draw(stage, prepared, rows[:1], 1)  # the first pass of all is slower than any other
        first = await _draw(stage, prepared, rows, 1)
        more = await _draw(stage, prepared, rows, 1 + drawn)
        trained = await _train(stage, prepared, _batch(prepared, ids, lengths, load))
    return Speed(first, max(0.0, more - first) / drawn, trained)


async def _draw(stage: Rehearsal, prepared: Prepared, rows: list[Any], num_tokens: int) -> float:
    sampling = replace(run_sampling(prepared.config.rollout), max_tokens=num_tokens, ignore_eos=True, stop=())
    began = time.perf_counter()
    await asyncio.gather(
        *(stage.engine.generate(Request(f"probe/{i}", ids, sampling, seed=i)) for i, ids in enumerate(rows))
    )
    return time.perf_counter() - began


def _batch(prepared: Prepared, ids: list[Any], lengths: Lengths, load: Load) -> Batch:
    """One micro-batch of made-up responses."""
    size = prepared.config.rollout.samples_per_prompt
    response = np.zeros(max(1, round(lengths.response)), np.int32) + ids[0][0]
    groups: list[Group] = []
    fed = 0
    for number, prompt in enumerate(cycle(ids)):
        samples = []
        for member in range(size):
            drawn = Tokens.drawn(response, np.full(len(response), -1.0), np.zeros(len(response), np.int32))
            sample = Sample(index=number * size + member, group_id=number)
            sample.sequence, sample.prompt_length = Tokens.context(prompt) + drawn, len(prompt)
            sample.reward = 0.0
            samples.append(sample)
            fed += len(response) - 1
        groups.append(Group(number, Prompt(id=str(number), messages=""), samples))
        fed += len(prompt)
        if fed >= load.micro_tokens:
            break
    plan = prepared.plan
    return make_batch(
        groups, num_updates=1, max_response_tokens=plan.max_response_tokens, temperature=plan.temperature
    )


async def _train(stage: Rehearsal, prepared: Prepared, batch: Batch) -> float:
    config = prepared.config
    # The policy's own pass, by which others are counted.
    alone = {"kl_loss_coef": 0.0, "advantage": "group", "teacher": Teacher(), "teachers": []}
    algorithm = open_algorithm(config.algo.model_copy(update=alone), num_updates=1)
    is_wide = config.engine.dtype == "float32"
    policy = stage.model if is_wide else load_model(prepared.model, torch.float32)
    adapters = Adapters(policy, config.train.lora, seed=0) if config.train.lora.rank else None
    models = Models(policy, None, adapters)
    trainer = LocalTrainer(models, config.train, algorithm, stage.compute, total_updates=1)
    batch.advantage = np.ones(batch.num_tokens, np.float32)  # every sample counts, whatever its group
    began = time.perf_counter()
    metrics = await trainer.step(batch)
    return metrics["train/tokens"] / (time.perf_counter() - began)
