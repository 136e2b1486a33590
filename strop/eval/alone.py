"""Evaluation without a run: an engine, the data sets, nothing else."""

import time
from typing import Protocol

from strop.eval.evaluate import Evaluation, evaluate
from strop.preflight import Prepared
from strop.rehearsal import rehearsal
from strop.rollout.group import Player
from strop.rollout.sampling import eval_sampling


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
    async with rehearsal(prepared) as parts:
        await _evaluate(parts.player, prepared, watch)


async def _evaluate(player: Player, prepared: Prepared, watch: Watch) -> None:
    for section in prepared.config.eval.datasets:
        prompts, began = prepared.eval_sets[section.name], time.perf_counter()

        def tell(done: int, of: int, name: str = section.name) -> None:
            watch.progress(name, done, of)

        tell(0, len(prompts))
        sampling = eval_sampling(section, prepared.config.rollout)
        result = await evaluate(player, section, prompts, sampling, tell)
        watch.finished(result, time.perf_counter() - began)
