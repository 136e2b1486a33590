"""The trainer seam: scores a batch, steps on it, gives its weights away, saves and loads itself."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from strop.algo.base import Score
from strop.algo.batch import Batch
from strop.engines.base import Weights


class Trainer(Protocol):
    """Owns the trained weights and their optimizer. Every method that computes is awaited."""

    async def score(self, batch: Batch, what: Score) -> NDArray[np.float32]:
        """Log-probs or values of every response token of the batch, in the batch's token order."""
        ...

    async def step(self, batch: Batch) -> dict[str, float]:
        """All updates of one step; returns the metrics under `train/`.

        Raises NonFinite when `on_nan = "stop"`; the weights are then those before the bad update.
        """
        ...

    def weights(self) -> Weights:
        """Names and tensors as in the model's checkpoint: the trainer's own, or made one by one."""
        ...

    def save(self, directory: Path) -> None:
        """Write weights and optimizer into an existing directory, which is then a loadable model."""
        ...

    def load(self, directory: Path, state: dict[str, Any]) -> None:
        """Take back exactly what `save` and `state` gave."""
        ...

    def state(self) -> dict[str, Any]:
        """Counters, as JSON."""
        ...
