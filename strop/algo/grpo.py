"""GRPO and, by its options, Dr. GRPO and DAPO's loss: group-relative advantages, clipped surrogate, KL in the
loss, entropy bonus."""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.algo.advantages import group_advantages
from strop.algo.aggregate import token_weights
from strop.algo.base import Loss, LossInputs, Need
from strop.algo.batch import Batch
from strop.algo.kl import estimate_kl
from strop.algo.losses import clipped_surrogate
from strop.config.tree import Algo

# N tokens


class Grpo:
    """An `Algorithm`. With one update a step the ratio is 1 in value, so `old` need not be computed apart."""

    def __init__(self, section: Algo, *, num_updates: int) -> None:
        self._section = section
        needs: set[Need] = set()
        if num_updates > 1:
            needs.add("old")
        if section.kl_loss_coef > 0:
            needs.add("ref")
        self.needs: frozenset[Need] = frozenset(needs)
        self.weighs_entropy = section.entropy_coef > 0

    def credit(self, batch: Batch) -> None:
        """Every response token of a sample gets its trajectory's advantage within the group."""
        per_sample = group_advantages(
            batch.rewards,
            groups=batch.groups,
            trajectories=batch.trajectories,
            normalize_std=self._section.normalize_std,
        )
        batch.advantage = batch.spread(per_sample)

    def weights(self, batch: Batch) -> NDArray[np.float32]:
        """By `algo.aggregation`."""
        return token_weights(
            self._section.aggregation,
            mask=batch.mask,
            trajectory_of_token=batch.trajectories[batch.sample_of_token],
            update_of_token=batch.update[batch.sample_of_token],
            constant=batch.max_response_tokens,
        )

    def contributes(self, batch: Batch) -> NDArray[np.bool_]:
        """A trained token moves the weights by its advantage, or in any case by a KL or entropy term."""
        always = self._section.kl_loss_coef > 0 or self.weighs_entropy
        moves = batch.mask & (always | (batch.advantage != 0))
        return np.bincount(batch.sample_of_token, weights=moves, minlength=len(batch.samples)) > 0

    def loss(self, inputs: LossInputs) -> Loss:
        """Σ weight · (surrogate + kl_loss_coef · KL − entropy_coef · entropy).

        Parts: `pg_loss`, `entropy`, `ppo_kl` (old − new), `clip_frac_low`, `clip_frac_high`, `pg_clipfrac`
        (their sum), and `kl_loss`, without its coefficient, when there is a reference.
        """
        section, known = self._section, _trained_only(inputs)
        surrogate = clipped_surrogate(
            known.logp_N,
            known.old_N,
            advantage_N=known.advantage_N,
            clip_low=section.clip_low,
            clip_high=section.clip_high,
            dual_clip=section.dual_clip,
        )
        loss_N = surrogate.loss_N
        values = {
            "pg_loss": surrogate.loss_N,
            "entropy": known.entropy_N,
            "ppo_kl": known.old_N - known.logp_N,
            "clip_frac_low": surrogate.clipped_low_N,
            "clip_frac_high": surrogate.clipped_high_N,
            "pg_clipfrac": surrogate.clipped_low_N | surrogate.clipped_high_N,
        }
        if "ref" in self.needs:
            values["kl_loss"] = estimate_kl(known.logp_N, known.ref_N, kind=section.kl_loss_type)
            loss_N = loss_N + section.kl_loss_coef * values["kl_loss"]
        if self.weighs_entropy:
            loss_N = loss_N - section.entropy_coef * known.entropy_N
        parts = {name: (known.weight_N * value_N.detach()).sum() for name, value_N in values.items()}
        return Loss(total=(known.weight_N * loss_N).sum(), parts=parts)


def _trained_only(inputs: LossInputs) -> LossInputs:
    """The inputs with 0 where the weight is 0.

    0 · NaN is NaN, in the value and in the gradient, so an untrained token's missing log-prob would reach the
    sum (SkyRL#1635). Every column stays connected to the graph, even when no token is trained: a rank whose
    loss has no graph would leave the others waiting for its gradients.
    """
    is_trained_N = inputs.weight_N > 0

    def keep(value_N: Tensor) -> Tensor:
        return torch.where(is_trained_N, value_N, 0)

    return replace(
        inputs,
        logp_N=keep(inputs.logp_N),
        entropy_N=keep(inputs.entropy_N),
        old_N=keep(inputs.old_N),
        ref_N=keep(inputs.ref_N),
        advantage_N=keep(inputs.advantage_N),
    )
