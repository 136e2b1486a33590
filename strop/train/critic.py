"""The critic: values of a batch's states, and its own step towards the returns; a model of its own, or a head
on the policy's trunk.
"""

from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.algo.base import Loss
from strop.algo.batch import Batch
from strop.algo.value import critic_loss, value_metrics
from strop.config.algo import Critic
from strop.config.tree import Train
from strop.nn.loading import CausalLM, load_model
from strop.nn.saving import read_weights, save_model
from strop.nn.value_head import ValueHead, open_head, scoring_parameters
from strop.train.forward import end_values_of, packed_hidden, values_of
from strop.train.optimizer import Optimizer
from strop.train.packing import Packed, pack
from strop.train.update import Applier, Update

# N tokens, S samples, T tokens of a micro-batch, D hidden size

FOLDER = "critic"
"""Of a checkpoint: a critic with a model of its own."""
Values = Literal["values", "next_values"]


class ValueModel(Protocol):
    """What the trainer asks of either form."""

    @property
    def trains_policy(self) -> bool:
        """Whether the policy moves in the step that comes next."""
        ...

    def score(self, batch: Batch, what: Values) -> NDArray[np.float32]:
        """[N] values of the states in which tokens were sampled, NaN elsewhere; or of the states in which
        truncated samples end, on all their tokens, 0 elsewhere."""
        ...

    def joint_loss(self, hidden_TD: Tensor, batch: Batch, packed: Packed, weight_N: Tensor) -> Loss | None:
        """What a shared trunk learns beside the policy; None: nothing."""
        ...

    def step(self, batch: Batch, weights: NDArray[np.float32]) -> dict[str, float]:
        """All updates of one step, after `credit`; metrics under `train/`."""
        ...

    def save(self, directory: Path) -> None: ...
    def load(self, directory: Path, state: dict[str, Any]) -> None: ...
    def state(self) -> dict[str, Any]: ...


class SharedCritic:
    """A head on the policy's trunk, trained in the policy's own pass and by its optimizer."""

    trains_policy = True

    def __init__(self, model: CausalLM, head: ValueHead, section: Critic, train: Train) -> None:
        self.head, self._section = head, section
        self._scorer = Scorer(model, head, train)

    def score(self, batch: Batch, what: Values) -> NDArray[np.float32]:
        """See `ValueModel`."""
        return self._scorer.values(batch) if what == "values" else self._scorer.next_values(batch)

    def joint_loss(self, hidden_TD: Tensor, batch: Batch, packed: Packed, weight_N: Tensor) -> Loss:
        """`coef` · the value loss, with the parts of the value loss itself."""
        loss = _loss(values_of(self.head, hidden_TD, packed), batch, packed, weight_N, self._section)
        return Loss(self._section.coef * loss.total, loss.parts)

    def step(self, batch: Batch, weights: NDArray[np.float32]) -> dict[str, float]:  # noqa: ARG002
        """Nothing is left to do but to tell how good the values were."""
        return _foretold(batch)

    def save(self, directory: Path) -> None:
        """The head beside the policy's weights; its moments are with the policy's."""
        self.head.save(directory)

    def load(self, directory: Path, state: dict[str, Any]) -> None:  # noqa: ARG002
        """Take back what `save` wrote."""
        self.head.read(directory)

    def state(self) -> dict[str, Any]:
        """There is none."""
        return {}


class OwnCritic:
    """A model of its own with an optimizer of its own."""

    def __init__(
        self, model: CausalLM, head: ValueHead, section: Critic, train: Train, *, total_updates: int
    ) -> None:
        self._model, self._head, self._section, self._train = model, head, section, train
        self._scorer = Scorer(model, head, train)
        lr = train.optim.lr if section.lr is None else section.lr
        optim = train.optim.model_copy(update={"lr": lr})
        trained = [*scoring_parameters(model), *head.named_parameters()]
        self._optimizer = Optimizer(trained, optim, total=total_updates)
        self._applier = Applier(self._optimizer, train.on_nan, "algo.critic.lr", " of the critic")
        self._steps = 0
        """Completed ones."""

    @property
    def trains_policy(self) -> bool:
        """See `ValueModel`."""
        return self._steps >= self._section.warmup_steps

    def score(self, batch: Batch, what: Values) -> NDArray[np.float32]:
        """See `ValueModel`."""
        return self._scorer.values(batch) if what == "values" else self._scorer.next_values(batch)

    def joint_loss(self, hidden_TD: Tensor, batch: Batch, packed: Packed, weight_N: Tensor) -> None:  # noqa: ARG002
        """See `ValueModel`."""
        return

    def step(self, batch: Batch, weights: NDArray[np.float32]) -> dict[str, float]:
        """See `ValueModel`; `train/tokens` are those of the critic."""
        is_trained = np.bincount(batch.sample_of_token, weights=weights, minlength=len(batch.samples)) > 0
        updates = []
        for index in range(batch.num_updates):
            rows = np.flatnonzero((batch.update == index) & is_trained).tolist()
            updates.append(self.differentiated(batch, rows, weights))
            self._applier.apply(updates[-1])
        self._steps += 1
        return {**_summary(updates), **_foretold(batch)}

    def differentiated(self, batch: Batch, rows: list[int], weights: NDArray[np.float32]) -> Update:
        """Gradients of the update that trains samples `rows`; the step is still to be taken."""
        update = Update(lr=self._optimizer.lr)
        with update.watched():
            for packed in pack(batch, rows, max_tokens=self._train.max_tokens_per_device):
                hidden_TD = packed_hidden(self._model, packed, dtype=self._scorer.dtype)
                value_N = values_of(self._head, hidden_TD, packed)
                weight_N = torch.from_numpy(weights[packed.columns])
                loss = _loss(value_N, batch, packed, weight_N, self._section)
                update.add(loss, weight=float(weight_N.sum()), num_tokens=len(packed.ids))
        return update

    def save(self, directory: Path) -> None:
        """A loadable model with a value head, and its optimizer, in a folder of the checkpoint."""
        (directory / FOLDER).mkdir()
        save_model(self._model, directory / FOLDER)
        self._head.save(directory / FOLDER)
        self._optimizer.save(directory / FOLDER)

    def load(self, directory: Path, state: dict[str, Any]) -> None:
        """Take back what `save` and `state` gave."""
        read_weights(self._model, directory / FOLDER)
        self._head.read(directory / FOLDER)
        self._optimizer.load(directory / FOLDER, updates=state["updates"])
        self._steps = state["steps"]

    def state(self) -> dict[str, Any]:
        """Counters."""
        return {"updates": self._optimizer.updates, "steps": self._steps}


def open_critic(
    policy: CausalLM, path: Path | None, section: Critic, train: Train, *, total_updates: int
) -> ValueModel:
    """By `algo.critic`. A model of its own begins as the one in `path`, or as the policy does."""
    if section.shared:
        return SharedCritic(policy, open_head(policy), section, train)
    model = load_model(path or policy.source, torch.float32)
    return OwnCritic(model, open_head(model), section, train, total_updates=total_updates)


class Scorer:
    """Values by a model and its head, without gradients."""

    def __init__(self, model: CausalLM, head: ValueHead, train: Train) -> None:
        self._model, self._head, self._max_tokens = model, head, train.max_tokens_per_device
        self.dtype: torch.dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[train.dtype]

    @torch.inference_mode()
    def values(self, batch: Batch) -> NDArray[np.float32]:
        """[N] of the states in which tokens were sampled; NaN elsewhere."""
        column = np.full(batch.num_tokens, np.nan, np.float32)
        for packed in pack(batch, range(len(batch.samples)), max_tokens=self._max_tokens):
            hidden_TD = packed_hidden(self._model, packed, dtype=self.dtype)
            column[packed.columns] = values_of(self._head, hidden_TD, packed).numpy()
        return column

    def next_values(self, batch: Batch) -> NDArray[np.float32]:
        """[N] of the states in which truncated samples end, on all their tokens; 0 elsewhere."""
        rows = np.flatnonzero(batch.truncated)
        end_S = np.zeros(len(batch.samples), np.float32)
        end_S[rows] = self.ends(batch, rows.tolist())
        return batch.spread(end_S)

    @torch.inference_mode()
    def ends(self, batch: Batch, rows: list[int]) -> NDArray[np.float32]:
        """The value of the state in which each sample of `rows` ends, in their order."""
        values: list[NDArray[np.float32]] = []
        for packed in pack(batch, rows, max_tokens=self._max_tokens, whole=True):
            hidden_TD = packed_hidden(self._model, packed, dtype=self.dtype)
            values.append(end_values_of(self._head, hidden_TD, packed).numpy())
        return np.concatenate([*values, np.zeros(0, np.float32)])


def _loss(value_N: Tensor, batch: Batch, packed: Packed, weight_N: Tensor, section: Critic) -> Loss:
    at = packed.columns
    return critic_loss(
        value_N,
        torch.from_numpy(batch.scored["values"][at]),
        return_N=torch.from_numpy(batch.scored["returns"][at]),
        weight_N=weight_N,
        clip=section.clip,
    )


def _foretold(batch: Batch) -> dict[str, float]:
    known = value_metrics(batch.scored["values"], batch.scored["returns"], batch.mask)
    return {f"train/{name}": value for name, value in known.items()}


def _summary(updates: list[Update]) -> dict[str, float]:
    """Means over the step's finite updates."""
    finite = [update for update in updates if update.is_finite]
    metrics = {
        "train/tokens": float(sum(update.num_tokens for update in updates)),
        "train/critic_lr": updates[-1].lr,
        "train/critic_skipped_updates": float(len(updates) - len(finite)),
    }
    if finite:
        metrics["train/critic_grad_norm"] = sum(update.grad_norm for update in finite) / len(finite)
    trained = [update for update in finite if update.weight > 0]
    if trained:
        loss = [update.parts["value_loss"] for update in trained]
        clipped = [update.parts["value_clip_frac"] / update.weight for update in trained]
        metrics["train/value_loss"] = sum(loss) / len(trained)
        metrics["train/value_clip_frac"] = sum(clipped) / len(trained)
    return metrics
