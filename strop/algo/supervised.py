"""Supervised training: the negative log-prob of what rows say."""

import numpy as np
import torch
from numpy.typing import NDArray

from strop.algo.aggregate import token_weights
from strop.algo.base import Loss, LossInputs, Need
from strop.algo.batch import Batch
from strop.algo.finite import check_trained
from strop.algo.given import Outcomes, every_response, sample_sums
from strop.config.algo import Algo


class Supervised:
    """An `Algorithm`, and a `Given` one. The mean is over the trained tokens of the whole update, unless
    `algo.aggregation` says otherwise: a mean of means would depend on how it is split."""

    needs: frozenset[Need] = frozenset()
    weighs_entropy = False
    whole_groups = False

    def __init__(self, section: Algo) -> None:
        self._section = section

    def credit(self, batch: Batch) -> None:
        """Every trained token is reinforced alike."""
        batch.advantage = batch.mask.astype(np.float32)

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
        """All that have a trained token."""
        return every_response(batch)

    def loss(self, inputs: LossInputs) -> Loss:
        """−Σ weight · logp. Parts: `nll` and `entropy`. Raises NonFinite where a trained log-prob is
        not a number."""
        mask_N, weight_N = inputs.mask_N, inputs.weight_N
        check_trained(mask_N, logp=inputs.logp_N)
        nll_N = torch.where(mask_N, -inputs.logp_N, 0)
        entropy_N = torch.where(mask_N, inputs.entropy_N, 0).detach()
        total = (weight_N * nll_N).sum()
        return Loss(total=total, parts={"nll": total.detach(), "entropy": (weight_N * entropy_N).sum()})

    def outcomes(self, batch: Batch) -> Outcomes:
        """The mean log-prob of each row, which weighs as many as its trained tokens."""
        return Outcomes(self.worth(batch), sample_sums(batch, np.ones(batch.num_tokens)))

    def worth(self, batch: Batch) -> NDArray[np.float64]:
        """[S] the mean log-prob of a sample's trained tokens."""
        return sample_sums(batch, batch.scored["old"]) / sample_sums(batch, np.ones(batch.num_tokens))
