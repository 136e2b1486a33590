"""The algorithm seam: `credit` sees the whole step as numpy columns; `loss` is a pure function of tensors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.algo.batch import Batch
from strop.algo.sequence import Sums

LogProb = Literal["old", "ref"]
"""Log-probs that the trainer computes before `credit`: at the start of the step, of the frozen reference."""
Score = Literal["old", "ref", "teacher", "values", "next_values", "scores"]
"""What the trainer computes before `credit`: log-probs, those of teachers among them (NaN where none is
asked), and the critic's values: of the state in which each token was drawn, and of the state in which a
truncated response was cut off, on each of its tokens. `scores`: what a reward model makes of each response,
on each of its tokens."""
Need = Literal["old", "ref", "teacher", "divergence", "values", "next_values", "greedy"]
"""`greedy`: the reward of a greedy reply to each prompt, which the rollout plays beside the group.
`divergence`: from the teachers, in the training pass itself: `LossInputs.columns["divergence"]`."""
LOG_PROBS: tuple[LogProb, ...] = ("old", "ref")
SCORES: tuple[Score, ...] = (*LOG_PROBS, "teacher", "values", "next_values")


@dataclass(frozen=True, slots=True)
class LossInputs:
    """N response tokens of one micro-batch, 1-D tensors of one length N; a sample's tokens are all there.

    `weight_N` holds the aggregation: 1 / denominator of the whole update, 0 where the mask is 0, so that
    the loss is Σ weight · per-token loss for every split into micro-batches and ranks.
    """

    logp_N: Tensor
    """Being trained; carries the gradient. What an untrained token holds is ignored, also NaN."""
    entropy_N: Tensor
    """Of the same distribution; carries the gradient when the algorithm weighs it."""
    old_N: Tensor
    """`logp_N.detach()` unless the algorithm needs the log-probs of the start of the step."""
    ref_N: Tensor
    """Equal to `old_N` unless the algorithm needs the reference."""
    behavior_N: Tensor
    """Recorded by the sampler; NaN where it drew nothing."""
    advantage_N: Tensor
    weight_N: Tensor
    sums: Sums
    """[N] → [N]: each token gets the sum over all tokens of its sample, wherever these lie; detached."""
    sample_N: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    """int64: the row of its sample in the batch; rising."""
    columns: Mapping[str, Tensor] = field(default_factory=dict)
    """Further columns of `batch.scored`, each [N], by name; and `divergence`, which carries a gradient."""

    @property
    def mask_N(self) -> Tensor:
        """bool: trained tokens."""
        return self.weight_N > 0


@dataclass(frozen=True, slots=True)
class Loss:
    """A scalar to differentiate, and sums for the metrics: name → Σ weight · value (detached)."""

    total: Tensor
    parts: dict[str, Tensor]


class Crediting(Protocol):
    """What the loop asks of an algorithm."""

    needs: frozenset[Need]

    def credit(self, batch: Batch) -> None:
        """As of an `Algorithm`."""
        ...


class Algorithm(Protocol):
    """How rewards become gradients; the trainer does not know which one it runs."""

    needs: frozenset[Need]
    weighs_entropy: bool
    """Whether `entropy_N` must carry a gradient."""

    whole_groups: bool
    """Whether the loss compares the samples of a group, so that a micro-batch must hold all of them."""

    def credit(self, batch: Batch) -> None:
        """Fill `batch.advantage` for every response token; the whole step is in sight. It may narrow
        `batch.mask`, and put further columns into `batch.scored` for the loss."""
        ...

    def weights(self, batch: Batch) -> NDArray[np.float32]:
        """[N] the `weight_N` of every response token, its denominators those of the token's whole update;
        call it after `credit`."""
        ...

    def contributes(self, batch: Batch) -> NDArray[np.bool_]:
        """[S] which samples can move the weights at all; call it after `credit`.

        The trainer need not compute the others. They keep their place in the denominators.
        """
        ...

    def loss(self, inputs: LossInputs) -> Loss:
        """Of one micro-batch. Pure: no clock, no config file, no collective."""
        ...
