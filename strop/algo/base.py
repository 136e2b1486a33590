"""The algorithm seam: `credit` sees the whole step as numpy columns; `loss` is a pure function of tensors."""

from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Tensor

from strop.algo.batch import Batch

Need = Literal["old", "ref"]
"""Log-probs that the trainer computes before `credit`: at the start of the step, or of the frozen reference."""


@dataclass(frozen=True, slots=True)
class LossInputs:
    """N response tokens of one micro-batch, 1-D tensors of one length N.

    `weight_N` holds the aggregation: 1 / denominator of the whole update, 0 where the mask is 0, so that
    the loss is Σ weight · per-token loss for every split into micro-batches and ranks.
    """

    logp_N: Tensor
    """Being trained; carries the gradient."""
    entropy_N: Tensor
    """Of the same distribution; carries the gradient when the algorithm weighs it."""
    old_N: Tensor
    ref_N: Tensor
    """Equal to `old_N` unless the algorithm needs the reference."""
    advantage_N: Tensor
    weight_N: Tensor


@dataclass(frozen=True, slots=True)
class Loss:
    """A scalar to differentiate, and sums for the metrics: name → Σ weight · value (detached)."""

    total: Tensor
    parts: dict[str, Tensor]


class Algorithm(Protocol):
    """How rewards become gradients; the trainer does not know which one it runs."""

    needs: frozenset[Need]

    def credit(self, batch: Batch) -> None:
        """Fill `batch.advantage` for every response token; the whole step is in sight."""
        ...

    def loss(self, inputs: LossInputs) -> Loss:
        """Of one micro-batch. Pure: no clock, no config file, no collective."""
        ...
