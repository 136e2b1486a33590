"""Evaluation without a run: an engine, the data sets, nothing else."""

import asyncio
import time
from typing import Protocol

import torch

from strop.engines.local.engine import LocalEngine
from strop.eval.evaluate import Evaluation, evaluate
from strop.nn.loading import load_model
from strop.preflight import Prepared
from strop.rollout.episode import Parts
from strop.rollout.group import Player
from strop.rollout.sampling import eval_sampling
from strop.runtime.compute import Compute


class Watch(Protocol):
    """Who is told how far it is; called between the engine's steps."""

    def progress(self, name: str, done: int, of: int) -> None:
        """`done` prompts of a data set are played."""
        ...

    def finished(self, result: Evaluation, seconds: float) -> None:
        """A data set is evaluated."""
        ...


async def evaluate_alone(prepared: Prepared, watch: Watch) -> None:
    """Every data set of `eval.datasets`, in order."""
    config, compute = prepared.config, Compute()
    torch.set_num_threads(prepared.plan.threads)
    engine = _engine(prepared, compute)
    parts = Parts(
        engine,
        prepared.renderer,
        prepared.make_env,
        config.env,
        max_context_tokens=config.rollout.max_context_tokens,
    )
    player = Player(parts, prepared.rewards, prepared.generate, seed=config.loop.seed, hooks=prepared.hooks)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(engine.serve())
        try:
            await _evaluate(player, prepared, watch)
        finally:
            serving.cancel()
            await prepared.rewards.close()
            await prepared.slime.close()
    compute.close()


def _engine(prepared: Prepared, compute: Compute) -> LocalEngine:
    section = prepared.config.engine
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[section.dtype]
    return LocalEngine(
        load_model(prepared.model, dtype),
        compute,
        max_tokens=section.max_tokens,
        stop_ids=prepared.renderer.stop_ids,
        decode=prepared.renderer.decode,
    )


async def _evaluate(player: Player, prepared: Prepared, watch: Watch) -> None:
    for section in prepared.config.eval.datasets:
        prompts, began = prepared.eval_sets[section.name], time.perf_counter()

        def tell(done: int, of: int, name: str = section.name) -> None:
            watch.progress(name, done, of)

        tell(0, len(prompts))
        sampling = eval_sampling(section, prepared.config.rollout)
        result = await evaluate(player, section, prompts, sampling, tell)
        watch.finished(result, time.perf_counter() - began)
