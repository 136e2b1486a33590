"""KTO: training on single responses that are marked good or bad (arXiv:2402.01306)."""

import numpy as np
import torch
from numpy.typing import NDArray

from strop.algo.base import Loss, LossInputs, Need
from strop.algo.batch import Batch
from strop.algo.given import Outcomes, Responses, every_response, mean_over_samples, sample_sums
from strop.algo.kto import kto
from strop.config.algo import Algo
from strop.sample import Role

# N tokens, S samples

_POINT, _GOOD, _SHARE = "reference_point", "is_desirable", "share_of_kind"
"""Columns."""


class Marked:
    """An `Algorithm`, and a `Given` one: the mean over the marked responses of an update.

    The reference point z is of the policy at the start of the step, over the mismatched samples of the whole
    update: the loss does not depend on how the update is split.
    """

    needs: frozenset[Need] = frozenset({"old", "ref"})
    weighs_entropy = False
    whole_groups = False

    def __init__(self, section: Algo) -> None:
        self._section = section.preference

    def credit(self, batch: Batch) -> None:
        """Signs as advantages; z, and what is known of each sample, as columns for the loss."""
        roles = np.array([sample.role for sample in batch.samples])
        sign_S = (roles == Role.DESIRABLE).astype(float) - (roles == Role.UNDESIRABLE)
        batch.advantage = np.where(batch.mask, batch.spread(sign_S), 0).astype(np.float32)
        gain_S = self._gains(batch)
        point_S, share_S = np.zeros(len(roles)), np.zeros(len(roles))
        for index in range(batch.num_updates):
            here = batch.update == index
            others = here & (roles == Role.MISMATCHED)
            point_S[here] = max(0.0, gain_S[others].mean()) if others.any() else 0.0
            for role in (Role.DESIRABLE, Role.UNDESIRABLE):
                alike = here & (roles == role)
                share_S[alike] = alike.sum() / (here & (roles != Role.MISMATCHED)).sum()
        batch.scored[_POINT] = batch.spread(point_S)
        batch.scored[_GOOD] = batch.spread(roles == Role.DESIRABLE)
        batch.scored[_SHARE] = batch.spread(share_S)

    @staticmethod
    def _gains(batch: Batch) -> NDArray[np.float64]:
        """[S] summed log-ratio to the reference, mismatched samples included."""
        return sample_sums(batch, batch.scored["old"]) - sample_sums(batch, batch.scored["ref"])

    def weights(self, batch: Batch) -> NDArray[np.float32]:
        """Those of a response add up to 1 / marked responses of its update."""
        return mean_over_samples(batch)

    def contributes(self, batch: Batch) -> NDArray[np.bool_]:
        """All but the mismatched ones."""
        return every_response(batch)

    def loss(self, inputs: LossInputs) -> Loss:
        """Parts: what the policy says the desirable (`rewards/chosen`) and the undesirable responses are
        worth, each a mean over its kind, how many are on the right side of z, and z."""
        said = Responses.of(inputs)
        is_good_S, beta = said.columns[_GOOD] > 0, self._section.beta
        loss_S = kto(
            said.logp_S,
            said.ref_S,
            is_desirable_S=is_good_S,
            reference_point=said.columns[_POINT].double(),
            beta=beta,
            desirable_weight=self._section.desirable_weight,
            undesirable_weight=self._section.undesirable_weight,
        )
        worth_S = beta * (said.logp_S - said.ref_S).detach()
        parts = {"reference_point": (said.weight_S * said.columns[_POINT]).sum()}
        of_kind_S = said.weight_S * worth_S / said.columns[_SHARE]
        for name, kind_S in (("rewards/chosen", is_good_S), ("rewards/rejected", ~is_good_S)):
            if kind_S.any():
                parts[name] = of_kind_S[kind_S].sum()
        sign_S = torch.where(is_good_S, 1.0, -1.0).double()
        right_S = (sign_S * (worth_S - beta * said.columns[_POINT])) > 0
        parts["rewards/accuracies"] = (said.weight_S * right_S).sum()
        return Loss(total=(said.weight_S * loss_S).sum(), parts=parts)

    def outcomes(self, batch: Batch) -> Outcomes:
        """Whether it is on the right side of z, of each marked response; call it after `credit`."""
        first_S = batch.offsets[:-1]
        above_S = self.worth(batch) > self._section.beta * batch.scored[_POINT][first_S]
        right_S = above_S == (batch.scored[_GOOD][first_S] > 0)
        marked = [row for row, sample in enumerate(batch.samples) if sample.role != Role.MISMATCHED]
        return Outcomes(right_S[marked].astype(np.float64), np.ones(len(marked)))

    def worth(self, batch: Batch) -> NDArray[np.float64]:
        """[S] β · log-ratio to the reference."""
        return self._section.beta * self._gains(batch)
