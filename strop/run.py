"""`Run`: the parts of one run and their lifetimes. The order in which they act is `loop.py`'s."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import torch

from strop.algo.base import SCORES, Algorithm, Crediting
from strop.algo.batch import Batch, make_batch
from strop.algo.open import open_algorithm
from strop.algo.scoring import NoCredit, open_objective
from strop.buffer.buffer import Buffer
from strop.config.algo_rules import advice
from strop.config.offline_rules import is_scoring
from strop.eval.due import occasion
from strop.eval.evaluate import Evaluation
from strop.nn.loading import CausalLM, load_model
from strop.nn.lora import Adapters
from strop.preflight import Prepared
from strop.randomness import derive
from strop.runtime.compute import Compute
from strop.runtime.garbage import set_aside
from strop.runtime.memory import peak_bytes
from strop.runtime.plan import Plan
from strop.sample import Group
from strop.store.run_dir import RunDirectory
from strop.store.samples import write_samples
from strop.summary import Totals, step_record
from strop.supply import Archive, Stage, Supply
from strop.sync.base import Transport
from strop.telemetry.base import Sink
from strop.telemetry.spans import Spans
from strop.train.base import Trainer
from strop.train.critic import ValueModel, open_critic
from strop.train.local import LocalTrainer, Models
from strop.train.rewarding import RewardTrainer
from strop.train.teachers import Teachers, open_teachers


class Run:
    """One run on this machine: give it to `loop.train`, then `close` it."""

    def __init__(self, prepared: Prepared, directory: RunDirectory, sink: Sink) -> None:
        self._prepared, self._directory, self._sink = prepared, directory, sink
        self._config = config = prepared.config
        self.plan: Plan = prepared.plan
        self._compute = Compute()
        self._spans = Spans(time.perf_counter)
        self._began = self._step_began = time.perf_counter()
        self._scores_rows = is_scoring(config)
        self.algo: Crediting = NoCredit() if self._scores_rows else self._algorithm()
        self.trainer, models = self._models()
        self._supply = self._supplied_by(models)
        self.sync: Transport = self._supply.sync
        self.buffer = Buffer(groups_per_step=self.plan.groups_per_step, staleness=config.buffer.staleness)
        self._device = asyncio.Lock()
        self._totals = Totals()
        self._first_step = 0
        self._interrupt_asked = False
        self.completed = 0
        """Steps closed so far, those before a resume included."""
        self.interrupted_after: int | None = None
        """Completed steps at which the run stopped because it was asked to."""

    def _models(self) -> tuple[Trainer, Models]:
        config, path = self._config, self._prepared.model
        torch.set_num_threads(self.plan.threads)
        policy = load_model(path, torch.float32)
        adapters = None
        if config.train.lora.rank:
            adapters = Adapters(policy, config.train.lora, seed=derive(config.loop.seed, "lora"))
        needs_reference = "ref" in self.algo.needs and adapters is None
        reference = load_model(path, torch.float32) if needs_reference else None
        models = Models(policy, reference, adapters, self._critic(policy), self._teachers())
        updates, algorithm = self.plan.total_updates, self._algorithm
        if self._scores_rows:
            objective = open_objective(config.algo)
            trainer = RewardTrainer(models, config.train, objective, self._compute, total_updates=updates)
            return trainer, models
        return LocalTrainer(models, config.train, algorithm(), self._compute, total_updates=updates), models

    def _algorithm(self) -> Algorithm:
        return open_algorithm(self._config.algo, num_updates=self.plan.num_updates)

    def _supplied_by(self, models: Models) -> Supply:
        prepared, ledger = self._prepared, self._directory.ledger
        if prepared.rows is not None:
            return Archive(prepared, prepared.rows, self.trainer, ledger)
        plays_greedy = "greedy" in self.algo.needs
        stage = Stage(prepared, self._engine_model(models), self._compute, ledger, plays_greedy=plays_greedy)
        stage.rollouts.on_finished = self._show_rollout
        return stage

    def _engine_model(self, models: Models) -> CausalLM:
        """The engine works on the trainer's own tensors when it can: at staleness 0 they take turns."""
        path = self._prepared.model
        if self._config.engine.dtype == "bfloat16":
            return load_model(path, torch.bfloat16)
        if models.adapters is None:
            return models.policy
        merged = load_model(path, torch.float32)
        models.adapters.lend(merged)
        return merged

    def _critic(self, policy: CausalLM) -> ValueModel | None:
        config, prepared = self._config, self._prepared
        if "values" not in self.algo.needs:
            return None
        updates = config.loop.steps * self.plan.num_updates
        return open_critic(policy, prepared.critic, config.algo.critic, config.train, total_updates=updates)

    def _teachers(self) -> Teachers | None:
        paths = self._prepared.teaching.paths
        return open_teachers(paths, self._config.algo, self._config.train) if paths else None

    async def restore(self) -> None:
        """Go on from the run directory's checkpoint, if it has one."""
        checkpoint = self._directory.checkpoint
        if checkpoint is None:
            return
        state = checkpoint.state
        await self._compute(self.trainer.load, checkpoint.path, state["trainer"])
        self._supply.source.restore(state["rollouts"])
        self._totals = Totals(**state["totals"])
        self._first_step = self.completed = checkpoint.step
        await self.sync.push(self.trainer.weights(), checkpoint.step)

    @asynccontextmanager
    async def groups(self) -> AsyncIterator[None]:
        """Serve the engine and fill the buffer while the block runs; evaluate first, if the run is new."""
        total = self._config.loop.steps
        self._sink.begin(self._config.name, total, self._first_step)
        self._tell_what_is_left_out()
        async with set_aside(), asyncio.TaskGroup() as tasks:
            background = self._supply.serve(tasks)
            try:
                await self.restore()
                if self._first_step == 0:
                    await self._evaluate(0, "start")
                if total == 0:
                    self._totals.evals = {k: {**v, "end": v["start"]} for k, v in self._totals.evals.items()}
                elif self._first_step == total and not self._has_end:
                    await self._evaluate(total, "end")
                self._spans.split()
                self._step_began = time.perf_counter()
                steps = range(self._first_step, total)
                background.append(tasks.create_task(self._supply.source.fill(self.buffer, steps)))
                yield
            finally:
                for task in reversed(background):
                    task.cancel()
                    await asyncio.wait({task})  # rollouts before the engine that they wait for
                await self._prepared.rewards.close()
                await self._prepared.slime.close()

    def _tell_what_is_left_out(self) -> None:
        bad, num_too_long = self._prepared.bad_rows, self._prepared.num_too_long
        num_cut = self._prepared.num_cut
        if bad.count:
            self._sink.note(f"{bad.count} malformed rows are left out; the first: {bad.first}")
        rows = self._prepared.rows
        longest = self._config.prompts.max_tokens if rows is None else rows.limit
        if num_too_long:
            what = "prompts" if rows is None else "rows"
            self._sink.note(f"{num_too_long} {what} longer than {longest} tokens are left out")
        if num_cut:
            self._sink.note(f"{num_cut} rows longer than {longest} tokens are cut at their end")
        for note in (*self._prepared.template_notes, *advice(self._config)):
            self._sink.note(note)
        if bad.count or num_too_long:
            self._directory.event(
                "rows_left_out", malformed=bad.count, first_malformed=bad.first, too_long=num_too_long
            )
        if num_cut:
            self._directory.event("rows_cut", num=num_cut, max_tokens=longest)

    @property
    def _has_end(self) -> bool:
        """Whether every held-out set was evaluated at the end: not so when a run was killed and goes on with
        the number of steps that it then had."""
        return all("end" in self._totals.evals[s.name] for s in self._config.eval.datasets)

    def steps(self) -> Iterator[int]:
        """The steps that are left, until the run is interrupted."""
        for step in range(self._first_step, self._config.loop.steps):
            if self.interrupted_after is not None:
                return
            yield step

    def interrupt(self) -> None:
        """Stop after the step that is running, with a checkpoint."""
        self._interrupt_asked = True

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Hold the device for a part of the step."""
        async with self._device:
            self._sink.status(name)
            with self._spans.span(name):
                yield

    def packed(self, groups: list[Group]) -> Batch:
        """The groups of a step as columns."""
        batch = make_batch(
            groups,
            num_updates=self.plan.num_updates,
            max_response_tokens=self.plan.max_response_tokens,
            temperature=self.plan.temperature,
        )
        hint = self._prepared.teaching.hint
        if hint is not None:
            batch.for_teacher = hint.shown(batch, groups)
        return batch

    async def scored(self, batch: Batch) -> Batch:
        """The batch with the log-probs and values that the algorithm needs."""
        for what in [each for each in SCORES if each in self.algo.needs]:
            batch.scored[what] = await self.trainer.score(batch, what)
        return batch

    async def close_step(
        self, step: int, groups: list[Group], batch: Batch, metrics: dict[str, float]
    ) -> None:
        """Record the step; evaluate and checkpoint when due. Nothing is in flight: a consistent cut."""
        report = self._supply.source.reports.pop(step)
        self._supply.source.record_trained(step, groups)
        split = self._spans.split()
        split["step"] = time.perf_counter() - self._step_began
        record = step_record(step, groups, report, metrics, split)
        self._totals.add(record)
        advantages = {s.index: batch.advantage[batch.tokens_of(row)] for row, s in enumerate(batch.samples)}
        await self._compute(write_samples, self._directory.samples_path(step), groups, advantages)
        greedy = [Group(group.id, group.prompt, group.greedy) for group in groups if group.greedy]
        if greedy:
            await self._compute(write_samples, self._directory.greedy_path(step), greedy)
        self._directory.metrics.append(record)
        self._sink.step(record)
        self._show_sample(step, groups)
        self.completed = done = step + 1
        is_last = done == self._config.loop.steps
        when = occasion(done, every=self._config.eval.every, steps=self._config.loop.steps)
        if when is not None:
            await self._evaluate(done, when)
        every = self._config.store.checkpoint_every
        if is_last or self._interrupt_asked or (every and done % every == 0):
            await self._checkpoint(done)
        if self._interrupt_asked and not is_last:
            self.interrupted_after = done
        self._spans.split()  # evaluation and checkpoint are in the trace, not in the time of a step
        self._step_began = time.perf_counter()

    async def _evaluate(self, done: int, when: str) -> None:
        for section in self._config.eval.datasets:

            def show(finished: int, of: int, name: str = section.name) -> None:
                self._sink.status(f"eval {name} {finished}/{of} prompts")

            began = time.perf_counter()
            with self._spans.span("eval"):
                result = await self._supply.evaluate(section, show)
            await self._record_eval(result, done, when, seconds=time.perf_counter() - began)

    async def _record_eval(self, result: Evaluation, done: int, when: str, *, seconds: float) -> None:
        path = self._directory.eval_path(result.name, done)
        await self._compute(write_samples, path, result.groups, None)
        line = {
            "dataset": result.name,
            "step": done,
            "when": when,
            **result.as_json(),
            "time/eval_s": seconds,
        }
        self._directory.evals.append(line)
        if when in ("start", "end"):
            self._totals.evals.setdefault(result.name, {})[when] = result.as_json()
        self._sink.evaluated(line)

    async def _checkpoint(self, done: int) -> None:
        self._sink.status(f"checkpoint after {done} steps")
        self._totals.wall_s += time.perf_counter() - self._began
        self._began = time.perf_counter()
        state = {
            "trainer": self.trainer.state(),
            "rollouts": self._supply.source.state(),
            "totals": self._totals.as_json(),
        }

        def write() -> None:
            keep = self._config.store.keep
            self._directory.write_checkpoint(done, fill=self.trainer.save, state=state, keep=keep)

        with self._spans.span("checkpoint"):
            await self._compute(write)

    def _show_rollout(self, step: int, done: int, of: int) -> None:
        self._sink.status(f"step {step} rollout {done}/{of} groups")

    def _show_sample(self, step: int, groups: list[Group]) -> None:
        every = self._config.telemetry.show_sample_every
        if every and step % every == 0:
            self._sink.sample(groups[step // every % len(groups)].samples[0])

    def summary(self, status: str, steps: int) -> dict[str, Any]:
        """For `summary.json`."""
        return {
            "status": status,
            "steps": steps,
            "wall_s": self._totals.wall_s + time.perf_counter() - self._began,
            "eval": self._totals.evals,
            "rollout_tokens_per_s": self._totals.rollout_tokens_per_s,
            "train_tokens_per_s": self._totals.train_tokens_per_s,
            "peak_rss_gib": peak_bytes() / 2**30,
        }

    def close(self) -> None:
        """Write the trace and end the compute thread."""
        try:
            self._spans.write(self._directory.path / "trace.json")
        finally:
            self._compute.close()
