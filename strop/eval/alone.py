"""Evaluation without a run: an engine, the data sets, nothing else."""

import asyncio

import torch

from strop.engines.local.engine import LocalEngine
from strop.eval.evaluate import Evaluation, evaluate
from strop.nn.loading import load_model
from strop.preflight import Prepared
from strop.rollout.episode import Parts
from strop.rollout.group import Player
from strop.rollout.sampling import eval_sampling
from strop.runtime.compute import Compute


async def evaluate_alone(prepared: Prepared) -> list[Evaluation]:
    """Every data set of `eval.datasets`, in order."""
    config, compute = prepared.config, Compute()
    torch.set_num_threads(prepared.plan.threads)
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[config.engine.dtype]
    engine = LocalEngine(
        load_model(prepared.model, dtype),
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
    )
    player = Player(parts, prepared.rewards, prepared.generate, seed=config.loop.seed, hooks=prepared.hooks)
    results = []
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(engine.serve())
        try:
            for section in config.eval.datasets:
                sampling = eval_sampling(section, config.rollout)
                results.append(await evaluate(player, section, prepared.eval_sets[section.name], sampling))
        finally:
            serving.cancel()
            await prepared.rewards.close()
    compute.close()
    return results
