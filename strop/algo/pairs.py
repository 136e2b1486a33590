"""Preference training on pairs: which loss of `algo/preference.py`, and what is recorded of it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.algo import preference
from strop.algo.base import Loss, LossInputs, Need
from strop.algo.batch import Batch
from strop.algo.given import Outcomes, Responses, every_response, mean_over_samples, sample_sums
from strop.algo.preference import Lengths
from strop.config.algo import Algo
from strop.config.offline import NEEDS_REFERENCE, Objective
from strop.sample import Role

# P pairs, S = 2 P samples


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Summed log-probs of the two responses of each pair, as the losses take them."""

    chosen_P: Tensor
    rejected_P: Tensor
    ref_chosen_P: Tensor
    ref_rejected_P: Tensor
    lengths: Lengths
    weight_P: Tensor

    @classmethod
    def of(cls, inputs: LossInputs) -> "_Pairs":
        """A pair's samples follow each other, the chosen one first."""
        both = Responses.of(inputs)
        return cls(
            chosen_P=both.logp_S[::2],
            rejected_P=both.logp_S[1::2],
            ref_chosen_P=both.ref_S[::2],
            ref_rejected_P=both.ref_S[1::2],
            lengths=Lengths(both.length_S[::2], both.length_S[1::2]),
            weight_P=both.weight_S[::2] + both.weight_S[1::2],
        )


class Pairs:
    """An `Algorithm`, and a `Given` one: the mean over the pairs of an update."""

    weighs_entropy = False
    whole_groups = True

    def __init__(self, section: Algo) -> None:
        self._objective, self._section = section.objective, section.preference
        self.needs: frozenset[Need] = frozenset({"ref"} if section.objective in NEEDS_REFERENCE else ())

    def credit(self, batch: Batch) -> None:
        """The chosen response is reinforced, the rejected one discouraged."""
        roles = [sample.role for sample in batch.samples]
        assert roles == [Role.CHOSEN, Role.REJECTED] * (len(roles) // 2), (
            "the source of groups puts the chosen one first"
        )
        sign_S = np.array([1.0 if role == Role.CHOSEN else -1.0 for role in roles])
        batch.advantage = np.where(batch.mask, batch.spread(sign_S), 0).astype(np.float32)

    def weights(self, batch: Batch) -> NDArray[np.float32]:
        """Those of a pair add up to 1 / pairs of its update."""
        return mean_over_samples(batch)

    def contributes(self, batch: Batch) -> NDArray[np.bool_]:
        """All."""
        return every_response(batch)

    def loss(self, inputs: LossInputs) -> Loss:
        """Σ over pairs of weight · (the pair's loss + nll_weight · mean NLL of the chosen response). Parts:
        what the policy says the responses are worth, by TRL's names, and `nll` of the chosen ones."""
        pairs = _Pairs.of(inputs)
        worth = self._worth(pairs)
        nll_P = -pairs.chosen_P / pairs.lengths.chosen_P
        loss_P = self._loss(pairs)
        if self._adds_nll:
            loss_P = loss_P + self._section.nll_weight * nll_P
        values = {
            "nll": nll_P,
            "rewards/chosen": worth.chosen_P,
            "rewards/rejected": worth.rejected_P,
            "rewards/margins": worth.margin_P,
            "rewards/accuracies": worth.is_right_P,
        }
        parts = {name: (pairs.weight_P * value_P.detach()).sum() for name, value_P in values.items()}
        return Loss(total=(pairs.weight_P * loss_P).sum(), parts=parts)

    @property
    def _adds_nll(self) -> bool:
        """ORPO and CPO have it in their own loss."""
        return self._section.nll_weight > 0 and self._objective not in ("orpo", "cpo")

    def _loss(self, pairs: _Pairs) -> Tensor:
        section, both = self._section, (pairs.chosen_P, pairs.rejected_P)
        free: dict[Objective, Callable[..., Tensor]] = {
            "simpo": partial(preference.simpo, beta=section.beta, target_margin=section.target_margin),
            "orpo": partial(preference.orpo, odds_weight=section.odds_weight),
            "cpo": partial(preference.cpo, beta=section.beta, nll_weight=section.nll_weight),
        }
        if self._objective in free:
            return free[self._objective](*both, lengths=pairs.lengths)
        tied: dict[Objective, Callable[..., Tensor]] = {
            "dpo": partial(preference.dpo, label_smoothing=section.label_smoothing),
            "robust_dpo": partial(preference.robust_dpo, flipped=section.label_smoothing),
            "ipo": partial(preference.ipo, lengths=pairs.lengths if section.mean_logp else None),
            "hinge": preference.hinge,
            "nca_pair": preference.nca_pair,
            "sppo_hard": preference.sppo_hard,
            "apo_zero": preference.apo_zero,
        }
        return tied[self._objective](*both, pairs.ref_chosen_P, pairs.ref_rejected_P, beta=section.beta)

    def _worth(self, pairs: _Pairs) -> preference.Implied:
        """β · log-ratio; without a reference β · log-prob, of SimPO and ORPO the mean over tokens; of ORPO
        with λ for β, as in TRL."""
        lengths = pairs.lengths
        by_length = self._objective in ("simpo", "orpo")
        of_chosen_P, of_rejected_P = (
            length_P if by_length else torch.ones_like(length_P)
            for length_P in (lengths.chosen_P, lengths.rejected_P)
        )
        return preference.implied_rewards(
            (pairs.chosen_P - self._tied(pairs.ref_chosen_P)) / of_chosen_P,
            (pairs.rejected_P - self._tied(pairs.ref_rejected_P)) / of_rejected_P,
            torch.zeros_like(pairs.chosen_P),
            torch.zeros_like(pairs.rejected_P),
            beta=self._scale,
        )

    @property
    def _scale(self) -> float:
        return self._section.odds_weight if self._objective == "orpo" else self._section.beta

    def _tied(self, ref_P: Tensor) -> Tensor:
        return ref_P if "ref" in self.needs else torch.zeros_like(ref_P)

    def outcomes(self, batch: Batch) -> Outcomes:
        """Whether the chosen response is worth more, of each pair; a tie is not right."""
        worth_S = self.worth(batch)
        return Outcomes((worth_S[::2] > worth_S[1::2]).astype(np.float64), np.ones(len(worth_S) // 2))

    def worth(self, batch: Batch) -> NDArray[np.float64]:
        """[S] what it says the responses are worth, as in the metrics."""
        gain_S = sample_sums(batch, batch.scored["old"])
        if "ref" in self.needs:
            gain_S -= sample_sums(batch, batch.scored["ref"])
        worth_S = self._scale * gain_S
        if self._objective in ("simpo", "orpo"):
            worth_S /= sample_sums(batch, np.ones(batch.num_tokens))
        return worth_S
