"""Where a run's groups come from, and all that belongs to it: a `Stage` plays prompts against an engine, an
`Archive` gives rows. Each has a transport for new weights and its own way to evaluate held-out sets."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from strop.algo.open import open_given
from strop.algo.scoring import open_objective
from strop.config.offline_rules import is_scoring
from strop.config.tree import EvalSet
from strop.engines.local.engine import LocalEngine
from strop.eval.evaluate import Evaluation, evaluate
from strop.eval.given_rows import evaluate_rows
from strop.eval.given_scores import evaluate_scores
from strop.nn.loading import CausalLM
from strop.offline.rows import RowReader
from strop.offline.source import Offline
from strop.preflight import Prepared
from strop.rehearsal import host_of
from strop.rollout.base import GroupSource
from strop.rollout.episode import Parts
from strop.rollout.group import Player
from strop.rollout.rollouts import Rollouts
from strop.rollout.sampling import eval_sampling
from strop.runtime.compute import Compute
from strop.store.ledger import Ledger
from strop.sync.base import Transport
from strop.sync.none import Nowhere
from strop.sync.share import Share
from strop.train.base import Trainer

Show = Callable[[int, int], None]
"""Told how many prompts are done, and of how many."""


class Supply(Protocol):
    """What fills the buffer and evaluates."""

    source: GroupSource
    sync: Transport

    def serve(self, tasks: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Begin what has to run beside the loop until it is cancelled, the last first."""
        ...

    async def evaluate(self, section: EvalSet, show: Show) -> Evaluation:
        """One held-out set, by the weights as they are."""
        ...


class Stage:
    """A `Supply`: prompts are played against a local engine. `engine_model` is what it draws from."""

    def __init__(
        self,
        prepared: Prepared,
        engine_model: CausalLM,
        compute: Compute,
        ledger: Ledger,
        *,
        plays_greedy: bool,
    ) -> None:
        self._prepared, self._compute, config = prepared, compute, prepared.config
        self._engine = LocalEngine(
            engine_model,
            compute,
            max_tokens=config.engine.max_tokens,
            stop_ids=prepared.renderer.stop_ids,
            decode=prepared.renderer.decode,
        )
        self.sync: Transport = Share(self._engine)
        parts = Parts(
            self._engine,
            prepared.renderer,
            prepared.make_env,
            config.env,
            max_context_tokens=config.rollout.max_context_tokens,
            vocabulary=engine_model.vocab_size,
        )
        self._player = Player(
            parts,
            prepared.rewards,
            prepared.generate,
            seed=config.loop.seed,
            hooks=prepared.hooks,
            plays_greedy=plays_greedy,
        )
        self.rollouts = Rollouts(
            self._player, prepared.source, config.rollout, keep=prepared.keep, ledger=ledger
        )
        self.source: GroupSource = self.rollouts

    def serve(self, tasks: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """The engine, and models that judge within the run."""
        prepared = self._prepared
        host = host_of(prepared, self._engine, self._compute)
        return [tasks.create_task(self._engine.serve()), *prepared.rewards.serve(host, tasks)]

    async def evaluate(self, section: EvalSet, show: Show) -> Evaluation:
        """Its prompts are played."""
        prompts = self._prepared.eval_sets[section.name]
        sampling = eval_sampling(section, self._prepared.config.rollout)
        return await evaluate(self._player, section, prompts, sampling, show)


class Archive:
    """A `Supply`: rows are what is trained. There is no engine."""

    def __init__(self, prepared: Prepared, rows: RowReader, trainer: Trainer, ledger: Ledger) -> None:
        self._prepared, self._rows, self._trainer = prepared, rows, trainer
        self.sync: Transport = Nowhere()
        self.source: GroupSource = Offline(
            prepared.source, rows, batch_size=prepared.config.rollout.batch_size, ledger=ledger
        )

    def serve(self, tasks: asyncio.TaskGroup) -> list[asyncio.Task[None]]:  # noqa: ARG002 - nothing has to run
        """Nothing."""
        return []

    async def evaluate(self, section: EvalSet, show: Show) -> Evaluation:
        """The loss, or the accuracy of a reward model, on its rows, in one go."""
        rows, algo = self._prepared.eval_sets[section.name], self._prepared.config.algo
        show(0, len(rows))
        if is_scoring(self._prepared.config):
            objective = open_objective(algo)
            return await evaluate_scores(self._trainer, objective, section.name, rows, self._rows)
        return await evaluate_rows(self._trainer, open_given(algo), section.name, rows, self._rows)
