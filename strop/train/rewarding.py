"""Trains a reward model: a trunk and a scalar head, on whole groups of responses that were compared."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.algo.base import Score
from strop.algo.batch import Batch
from strop.algo.scoring import Objective, Scored
from strop.config.tree import Train
from strop.engines.base import Weights
from strop.nn.value_head import open_head, scoring_parameters
from strop.runtime.compute import Compute
from strop.train.critic import Scorer
from strop.train.forward import packed_hidden
from strop.train.local import Models
from strop.train.optimizer import Optimizer
from strop.train.packing import Packed, pack
from strop.train.update import Applier, Update, counted

# N tokens, S samples, T tokens of a micro-batch, D hidden size


class RewardTrainer:
    """A `Trainer` whose checkpoints are reward models: a model directory with a value head."""

    def __init__(
        self, models: Models, section: Train, objective: Objective, compute: Compute, *, total_updates: int
    ) -> None:
        self._models, self._model, self._section = models, models.policy, section
        self._head = open_head(self._model)
        self._objective, self._compute = objective, compute
        self._scorer = Scorer(self._model, self._head, section)
        own = scoring_parameters(self._model) if models.adapters is None else models.trained()
        self._optimizer = Optimizer(
            [*own, *self._head.named_parameters()], section.optim, total=total_updates
        )
        self._applier = Applier(self._optimizer, section.on_nan)

    async def score(self, batch: Batch, what: Score) -> NDArray[np.float32]:
        """`scores`: what each response is worth, on all of its tokens."""
        assert what == "scores", "a reward model has no log-probs"
        return batch.spread(await self._compute(self._scorer.ends, batch, list(range(len(batch.samples)))))

    async def step(self, batch: Batch) -> dict[str, float]:
        """See `train.base.Trainer`."""
        return await self._compute(self._step, batch)

    def _step(self, batch: Batch) -> dict[str, float]:
        updates = []
        for index in range(batch.num_updates):
            rows = np.flatnonzero(batch.update == index).tolist()
            updates.append(self.differentiated(batch, rows))
            self._applier.apply(updates[-1])
        return _summary(updates)

    def differentiated(self, batch: Batch, rows: list[int]) -> Update:
        """Gradients of the update that trains samples `rows`, whose groups are whole; the step is still to be
        taken."""
        update = Update(lr=self._optimizer.lr)
        num_groups = len({batch.samples[row].group_id for row in rows})
        most = self._section.max_tokens_per_device
        for packed in pack(batch, rows, max_tokens=most, whole=True, whole_groups=True):
            hidden_TD = packed_hidden(self._model, packed, dtype=self._scorer.dtype)
            scored = self._scored(batch, packed, hidden_TD)
            loss = self._objective.loss(scored, weight=1 / num_groups)
            update.add(loss, weight=len(scored.groups) / num_groups, num_tokens=len(packed.ids))
        return update

    def _scored(self, batch: Batch, packed: Packed, hidden_TD: Tensor) -> Scored:
        samples = [batch.samples[row] for row in packed.rows]
        rows = [
            np.arange(end + 1 - s.response_length, end + 1)
            for s, end in zip(samples, packed.ends, strict=True)
        ]
        token_N = self._head(hidden_TD.index_select(0, torch.from_numpy(np.concatenate(rows))))
        last_S = torch.from_numpy(np.cumsum([len(each) for each in rows]) - 1)
        return Scored(samples, token_N[last_S], token_N)

    def weights(self) -> Weights:
        """See `train.base.Trainer`; without the head, adapters merged."""
        return self._models.weights()

    def save(self, directory: Path) -> None:
        """See `train.base.Trainer`."""
        self._models.save(directory)
        self._head.save(directory)
        self._optimizer.save(directory)

    def load(self, directory: Path, state: dict[str, Any]) -> None:
        """See `train.base.Trainer`."""
        self._models.read(directory)
        self._head.read(directory)
        self._optimizer.load(directory, updates=state["updates"])

    def state(self) -> dict[str, Any]:
        """See `train.base.Trainer`."""
        return {"updates": self._optimizer.updates}


def _summary(updates: list[Update]) -> dict[str, float]:
    """Means over the step's finite updates; parts are means over the groups of an update."""
    metrics, finite = counted(updates)
    for name in finite[0].parts if finite else ():
        metrics[f"train/{name}"] = sum(update.parts.get(name, 0.0) for update in finite) / len(finite)
    return metrics
