"""The local trainer: forward, backward, AdamW, in this process; it does not know which algorithm it runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from strop.algo.base import LOG_PROBS, Algorithm, Loss, LossInputs, Score
from strop.algo.batch import Batch
from strop.algo.sequence import sums_by_sample
from strop.config.tree import Train
from strop.engines.base import Weights
from strop.nn.loading import CausalLM
from strop.nn.lora import Adapters
from strop.nn.saving import read_weights, save_model
from strop.runtime.compute import Compute
from strop.train.critic import SharedCritic, ValueModel
from strop.train.forward import packed_hidden, packed_stats, stats_of
from strop.train.mismatch import mismatch_metrics
from strop.train.optimizer import Optimizer
from strop.train.packing import Packed, pack
from strop.train.teachers import Teachers
from strop.train.update import Applier, Update, counted

_NUM_SILENT = 2
"""Samples that cannot move the weights and are scored for the mismatch metrics, per step."""
_SUMS = ("pg_loss", "value_loss")
"""Parts that are losses of the whole update."""


@dataclass(frozen=True, slots=True)
class Models:
    """`policy` is trained, or its `adapters` are. `reference` is frozen, there when the algorithm needs it
    unless there are adapters to switch off."""

    policy: CausalLM
    reference: CausalLM | None = None
    adapters: Adapters | None = None
    critic: ValueModel | None = None
    """There when the algorithm needs values."""
    teachers: Teachers | None = None
    """There when the algorithm needs what they say."""

    def trained(self) -> list[tuple[str, nn.Parameter]]:
        """Of the policy: what the optimizer moves."""
        return self.policy.named_parameters() if self.adapters is None else self.adapters.parameters()

    def weights(self) -> Weights:
        """See `train.base.Trainer`; adapters are merged."""
        if self.adapters is not None:
            return self.adapters.merged()
        return ((name, parameter.detach()) for name, parameter in self.policy.named_parameters())

    def save(self, directory: Path) -> None:
        """The policy, or its adapters beside the merged model."""
        if self.adapters is None:
            save_model(self.policy, directory)
        else:
            self.adapters.save(directory)

    def read(self, directory: Path) -> None:
        """Take back what `save` wrote."""
        if self.adapters is None:
            read_weights(self.policy, directory)
        else:
            self.adapters.read(directory)


class LocalTrainer:
    """Owns float32 master weights and their optimizer; a `Trainer`."""

    def __init__(
        self, models: Models, section: Train, algorithm: Algorithm, compute: Compute, *, total_updates: int
    ) -> None:
        self._models, self._model = models, models.policy
        self._reference, self._adapters = models.reference, models.adapters
        self._critic, self._teachers = models.critic, models.teachers
        self._section, self._algorithm, self._compute = section, algorithm, compute
        self._dtype: torch.dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[section.dtype]
        trained = models.trained()
        if isinstance(models.critic, SharedCritic):
            trained = [*trained, *models.critic.head.named_parameters()]
        self._optimizer = Optimizer(trained, section.optim, total=total_updates)
        self._applier = Applier(self._optimizer, section.on_nan)

    async def score(self, batch: Batch, what: Score) -> NDArray[np.float32]:
        """See `train.base.Trainer`; NaN where the policy did not sample."""
        if what == "values" or what == "next_values":
            assert self._critic is not None, "run.py makes a critic when the algorithm needs one"
            return await self._compute(self._critic.score, batch, what)
        if what == "teacher":
            assert self._teachers is not None, "run.py loads teachers when the algorithm needs them"
            return await self._compute(self._teachers.score, batch, self._model)
        if what == "ref" and self._adapters is not None:
            return await self._compute(self._score_without, self._adapters, batch)
        model = self._reference if what == "ref" else self._model
        assert model is not None, "run.py loads a reference when the algorithm needs one"
        return await self._compute(self._score, batch, model)

    def _score_without(self, adapters: Adapters, batch: Batch) -> NDArray[np.float32]:
        with adapters.off():
            return self._score(batch, self._model)

    @torch.inference_mode()
    def _score(self, batch: Batch, model: CausalLM, rows: Sequence[int] | None = None) -> NDArray[np.float32]:
        """Log-probs of `rows` (all samples, if None); NaN elsewhere and where the policy did not sample."""
        column = np.full(batch.num_tokens, np.nan, np.float32)
        rows = range(len(batch.samples)) if rows is None else rows
        for packed in pack(batch, rows, max_tokens=self._section.max_tokens_per_device):
            stats = packed_stats(model, packed, temperature=batch.temperature, dtype=self._dtype)
            column[packed.columns] = stats.logp_N.numpy()
        return column

    async def step(self, batch: Batch) -> dict[str, float]:
        """See `train.base.Trainer`."""
        return await self._compute(self._step, batch)

    def _step(self, batch: Batch) -> dict[str, float]:
        weights, contributes = self._algorithm.weights(batch), self._contributes(batch)
        if "old" in batch.scored:
            old = batch.scored["old"].copy()
        else:
            # With one update the training forward's own log-probs are those of the start of the step. Of the
            # samples that it leaves out a few are scored all the same, so that the mismatch is always known.
            silent = np.flatnonzero(~contributes)
            old = self._score(batch, self._model, silent[:_NUM_SILENT].tolist())
        updates: list[Update] = []
        for index in range(batch.num_updates if self._trains_policy else 0):
            rows = np.flatnonzero((batch.update == index) & contributes)
            micro_batches = pack(
                batch,
                rows.tolist(),
                max_tokens=self._section.max_tokens_per_device,
                whole_groups=self._algorithm.whole_groups,
            )
            update = Update(lr=self._optimizer.lr)
            with update.watched():
                for packed in micro_batches:
                    self._accumulate(update, batch, packed, weights, old)
            updates.append(update)
            self._applier.apply(update)
        metrics = {**_summary(updates), **mismatch_metrics(old, batch.behavior)}
        if self._critic is None:
            return metrics
        of_critic = self._critic.step(batch, weights)
        tokens = metrics["train/tokens"] + of_critic.get("train/tokens", 0.0)
        return {**metrics, **of_critic, "train/tokens": tokens}

    @property
    def _trains_policy(self) -> bool:
        return self._critic is None or self._critic.trains_policy

    def _contributes(self, batch: Batch) -> NDArray[np.bool_]:
        """A trunk that is shared with the critic learns from every trained sample."""
        if not isinstance(self._critic, SharedCritic):
            return self._algorithm.contributes(batch) & self._trains_policy
        return np.bincount(batch.sample_of_token, weights=batch.mask, minlength=len(batch.samples)) > 0

    def _accumulate(
        self,
        update: Update,
        batch: Batch,
        packed: Packed,
        weights: NDArray[np.float32],
        old: NDArray[np.float32],
    ) -> None:
        """Add one micro-batch's gradients; `old` is filled in where it was not scored before."""
        hidden_TD = packed_hidden(self._model, packed, dtype=self._dtype)
        stats = stats_of(self._model, hidden_TD, packed, temperature=batch.temperature, dtype=self._dtype)
        at = packed.columns
        sample_N = torch.from_numpy(batch.sample_of_token[at])
        if "old" not in batch.scored:
            old[at] = stats.logp_N.detach().numpy()
        old_N = torch.from_numpy(old[at])
        inputs = LossInputs(
            logp_N=stats.logp_N,
            entropy_N=stats.entropy_N,
            old_N=old_N,
            ref_N=torch.from_numpy(batch.scored["ref"][at]) if "ref" in batch.scored else old_N,
            behavior_N=torch.from_numpy(batch.behavior[at]),
            advantage_N=torch.from_numpy(batch.advantage[at]),
            weight_N=torch.from_numpy(weights[at]),
            sums=sums_by_sample(sample_N),
            sample_N=sample_N,
            columns=self._columns(batch, packed, hidden_TD),
        )
        loss = self._algorithm.loss(inputs)
        if self._critic is not None:
            beside = self._critic.joint_loss(hidden_TD, batch, packed, inputs.weight_N)
            loss = loss if beside is None else _joined(loss, beside)
        update.add(loss, weight=float(weights[at].sum()), num_tokens=len(packed.ids))

    def _columns(self, batch: Batch, packed: Packed, hidden_TD: Tensor) -> dict[str, Tensor]:
        """Of a micro-batch: what was scored or credited before, and what has a gradient beside log-probs."""
        at, given = packed.columns, batch.scored.items()
        columns = {name: torch.from_numpy(column[at]) for name, column in given if name not in LOG_PROBS}
        if "divergence" in self._algorithm.needs:
            assert self._teachers is not None, "run.py loads teachers when the algorithm needs them"
            columns["divergence"] = self._teachers.divergence(batch, packed, self._model, hidden_TD)
        return columns

    def weights(self) -> Weights:
        """See `train.base.Trainer`; adapters are merged."""
        return self._models.weights()

    def save(self, directory: Path) -> None:
        """See `train.base.Trainer`."""
        self._models.save(directory)
        self._optimizer.save(directory)
        if self._critic is not None:
            self._critic.save(directory)

    def load(self, directory: Path, state: dict[str, Any]) -> None:
        """See `train.base.Trainer`."""
        self._models.read(directory)
        self._optimizer.load(directory, updates=state["updates"])
        if self._critic is not None:
            self._critic.load(directory, state["critic"])

    def state(self) -> dict[str, Any]:
        """See `train.base.Trainer`."""
        of_critic = {} if self._critic is None else {"critic": self._critic.state()}
        return {"updates": self._optimizer.updates, **of_critic}


def _joined(loss: Loss, beside: Loss) -> Loss:
    return Loss(loss.total + beside.total, {**loss.parts, **beside.parts})


def _summary(updates: list[Update]) -> dict[str, float]:
    """Means over the step's updates, of which there are none while only the critic is trained. Losses are
    whole-update sums; rates and entropies are weighted means over the tokens that were computed, since the
    others are not known."""
    metrics, finite = counted(updates)
    computed = [u for u in finite if u.weight > 0]
    for name in dict.fromkeys(name for u in computed for name in u.parts):
        known = [u.parts[name] / (1.0 if name in _SUMS else u.weight) for u in computed if name in u.parts]
        metrics[f"train/{name}"] = sum(known) / len(known)
    return metrics
