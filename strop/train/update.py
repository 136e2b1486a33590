"""One optimizer update: sums over its micro-batches, and the step that what is not finite never takes."""

import math
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

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.loss) and math.isfinite(self.grad_norm)

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
        update.grad_norm = self.optimizer.clip()
        if update.is_finite:
            self.optimizer.step()
        elif self.on_nan == "stop":
            raise NonFinite(
                f"update {self.optimizer.updates}{self.whose}: loss = {update.loss}, gradient norm = "
                f"{update.grad_norm}; the weights are those before it. Lower {self.lr_key}, or set "
                "train.on_nan = 'skip'"
            )
        self.optimizer.zero_grad()
