"""One optimizer update: sums over its micro-batches, and the step that what is not finite never takes."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from strop.algo.base import Loss
from strop.errors import NonFinite
from strop.train.optimizer import Optimizer


@dataclass(slots=True)
class Update:
    """Sums over the micro-batches of one update."""

    lr: float = 0.0
    loss: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)
    weight: float = 0.0
    """Σ weight of the tokens that were computed."""
    num_tokens: int = 0
    """Tokens fed through the model."""
    grad_norm: float = 0.0
    fault: str | None = None
    """What a loss named as not finite; no further micro-batch was computed."""

    @property
    def is_finite(self) -> bool:
        return self.fault is None and math.isfinite(self.loss) and math.isfinite(self.grad_norm)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Around the micro-batches: NonFinite of a loss ends them, and what to do about it is decided where
        the step is taken."""
        try:
            yield
        except NonFinite as found:
            self.fault = str(found)

    def add(self, loss: Loss, *, weight: float, num_tokens: int) -> None:
        """Differentiate the loss of a micro-batch and count it."""
        loss.total.backward()
        self.loss += float(loss.total.detach())
        for name, part in loss.parts.items():
            self.parts[name] = self.parts.get(name, 0.0) + float(part)
        self.weight += weight
        self.num_tokens += num_tokens


@dataclass(frozen=True, slots=True)
class Applier:
    """Takes the steps of one optimizer; messages say whose they are."""

    optimizer: Optimizer
    on_nan: Literal["stop", "skip"]
    lr_key: str = "train.optim.lr"
    whose: str = ""
    """` of the critic`, or nothing."""

    def apply(self, update: Update) -> None:
        """Clip and step. Raises NonFinite when `on_nan = "stop"`; the weights are then those before."""
        if update.fault is None:
            update.grad_norm = self.optimizer.clip()
        if update.is_finite:
            self.optimizer.step()
        elif self.on_nan == "stop":
            what = update.fault or f"loss = {update.loss}, gradient norm = {update.grad_norm}"
            raise NonFinite(
                f"update {self.optimizer.updates}{self.whose}: {what}; the weights are those before it. "
                f"Lower {self.lr_key}, or set train.on_nan = 'skip'"
            )
        self.optimizer.zero_grad()


def counted(updates: list[Update]) -> tuple[dict[str, float], list[Update]]:
    """Of a step: what every trainer tells, means over the updates that were taken; and these updates."""
    finite = [update for update in updates if update.is_finite]
    metrics = {
        "train/updates": float(len(finite)),
        "train/skipped_updates": float(len(updates) - len(finite)),
        "train/tokens": float(sum(update.num_tokens for update in updates)),
    }
    if updates:
        metrics["train/lr"] = updates[-1].lr
    if finite:
        metrics["train/loss"] = sum(update.loss for update in finite) / len(finite)
        metrics["train/grad_norm"] = sum(update.grad_norm for update in finite) / len(finite)
    return metrics, finite
