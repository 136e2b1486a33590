"""A run's engine, environment and reward without a run: nothing is trained, and nothing is written."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import torch

from strop.engines.local.engine import LocalEngine
from strop.nn.loading import CausalLM, load_model
from strop.preflight import Prepared
from strop.rewards.asking import Host
from strop.rollout.episode import Parts
from strop.rollout.group import Player
from strop.runtime.compute import Compute
from strop.train.scoring import open_scorer


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The parts that play samples, ready."""

    model: CausalLM
    """What the engine draws from."""
    engine: LocalEngine
    player: Player
    compute: Compute


def host_of(prepared: Prepared, engine: LocalEngine, compute: Compute) -> Host:
    """For models that answer within a run."""
    return Host(
        engine,
        prepared.renderer,
        compute,
        policy=prepared.model,
        open_scorer=partial(open_scorer, section=prepared.config.train),
    )


@asynccontextmanager
async def rehearsal(prepared: Prepared) -> AsyncIterator[Rehearsal]:
    """The engine serves while the block runs."""
    config, compute = prepared.config, Compute()
    torch.set_num_threads(prepared.plan.threads)
    dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    model = load_model(prepared.model, dtypes[config.engine.dtype])
    engine = LocalEngine(
        model,
        compute,
        max_tokens=config.engine.max_tokens,
        stop_ids=prepared.renderer.stop_ids,
        decode=prepared.renderer.decode,
    )
    parts = Parts(
        engine,
        prepared.renderer,
        prepared.make_env,
        config.env,
        max_context_tokens=config.rollout.max_context_tokens,
        vocabulary=model.vocab_size,
    )
    player = Player(parts, prepared.rewards, prepared.generate, seed=config.loop.seed, hooks=prepared.hooks)
    async with asyncio.TaskGroup() as tasks:
        serving = [tasks.create_task(engine.serve())]
        serving += prepared.rewards.serve(host_of(prepared, engine, compute), tasks)
        try:
            yield Rehearsal(model, engine, player, compute)
        finally:
            for task in serving:
                task.cancel()
            await prepared.rewards.close()
            await prepared.slime.close()
            compute.close()
