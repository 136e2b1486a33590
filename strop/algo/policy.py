"""The policy-gradient algorithm: advantage, policy loss, correction and regularisers, each by its key."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.algo.aggregate import token_weights
from strop.algo.base import Loss, LossInputs, Need
from strop.algo.batch import Batch
from strop.algo.correction import Correction, correct, mean_of_weights
from strop.algo.corrections import correction_rules
from strop.algo.credit import open_advantage
from strop.algo.distill import distilled
from strop.algo.finite import check_trained
from strop.algo.kl import estimate_kl, kl_values
from strop.algo.losses import Surrogate
from strop.algo.opsm import masked_off_policy
from strop.algo.overlong import without_truncated
from strop.algo.policy_losses import open_policy_loss
from strop.algo.sequence import sums_by_sample
from strop.algo.trained import trained_values
from strop.algo.whiten import whiten
from strop.config.algo import Algo
from strop.config.algo_rules import BUILT_IN_LOSSES

# N tokens

_MEAN_WEIGHT = "mean_weight"
"""Column: the mean correction weight of a token's update."""


class PolicyGradient:
    """An `Algorithm`. With one update a step the ratio is 1 in value, so `old` need not be computed apart.

    Raises PluginError for a function that cannot be found.
    """

    def __init__(self, section: Algo, *, num_updates: int) -> None:
        self._section = section
        self._advantage, self._policy_loss = open_advantage(section), open_policy_loss(section)
        self._rules = correction_rules(section.correction)
        self.needs: frozenset[Need] = needs_of(section, num_updates=num_updates)
        self.weighs_entropy = section.entropy_coef > 0
        self.whole_groups = False

    def credit(self, batch: Batch) -> None:
        """Advantages, whitened if asked for; with `algo.mask_truncated`, a mask without truncated samples."""
        section = self._section
        if section.mask_truncated:
            batch.mask = without_truncated(batch.mask, batch.truncated[batch.sample_of_token])
        advantage_N = self._advantage(batch, self._penalty(batch))
        if "teacher" in self.needs:
            advantage_N = advantage_N + distilled(batch, self._start(batch), coef=section.teacher.coef)
        if section.whiten != "none":
            advantage_N = whiten(advantage_N, batch.mask, variance=section.whiten).values_N
        batch.advantage = advantage_N.astype(np.float32)
        if section.correction.normalize:
            batch.scored[_MEAN_WEIGHT] = self._mean_weights(batch)

    def _penalty(self, batch: Batch) -> NDArray[np.float64]:
        """[N] what KL takes from the reward of each trained token. Raises NonFinite where it is no number."""
        section = self._section
        if section.kl_coef == 0:
            return np.zeros(batch.num_tokens)
        kl_N = kl_values(self._start(batch), batch.scored["ref"], kind=section.kl_type)
        return section.kl_coef * trained_values(kl_N, batch.mask, name="kl")

    def _start(self, batch: Batch) -> NDArray[np.float32]:
        """[N] the policy's log-probs at the start of the step."""
        return batch.behavior if self._section.old == "behavior" else batch.scored["old"]

    def _mean_weights(self, batch: Batch) -> NDArray[np.float32]:
        assert self._rules is not None
        assert self._rules.weighting is not None
        update_N, column_N = batch.update[batch.sample_of_token], np.ones(batch.num_tokens, np.float32)
        for index in range(batch.num_updates):
            rows = np.flatnonzero(update_N == index)
            column_N[rows] = mean_of_weights(
                torch.from_numpy(batch.scored["old"][rows]),
                torch.from_numpy(batch.behavior[rows]),
                weighting=self._rules.weighting,
                mask_N=torch.from_numpy(batch.mask[rows]),
                sums=sums_by_sample(torch.from_numpy(batch.sample_of_token[rows])),
            )
        return column_N

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
        """A trained token moves the weights by its advantage, or anyhow by a KL, teacher or entropy term."""
        is_own = self._section.policy_loss not in BUILT_IN_LOSSES  # nobody knows what moves it
        always = is_own or self._section.kl_loss_coef > 0 or self.weighs_entropy
        always = always or "divergence" in self.needs
        moves = batch.mask & (always | (batch.advantage != 0))
        return np.bincount(batch.sample_of_token, weights=moves, minlength=len(batch.samples)) > 0

    def loss(self, inputs: LossInputs) -> Loss:
        """Σ weight · (correction · policy loss + kl_loss_coef · KL + teacher.coef · divergence
        − entropy_coef · entropy).

        Parts: `pg_loss`, `entropy`, `ppo_kl` (old − new), `clip_frac_low`, `clip_frac_high`, `pg_clipfrac`
        (their sum), and where there is such a thing, `kl_loss` and `opd_kl`, without their coefficients,
        `correction_…` and `opsm_frac`. Raises NonFinite for a trained token of which something that acts is
        not a number.
        """
        section = self._section
        if section.old == "behavior":
            inputs = replace(inputs, old_N=inputs.behavior_N)
        self._check(inputs)
        known = _trained_only(inputs)
        surrogate = self._policy_loss(known)
        loss_N, values = self._corrected(surrogate.loss_N, known)
        values = {**_clipped(surrogate, known), "pg_loss": loss_N, **values}
        if "ref" in self.needs:
            values["kl_loss"] = self._kl(known)
        if section.kl_loss_coef > 0:
            loss_N = loss_N + section.kl_loss_coef * values["kl_loss"]
        if not self.needs.isdisjoint(("teacher", "divergence")):
            values["opd_kl"] = _from_teacher(known)
        if "divergence" in self.needs:
            loss_N = loss_N + section.teacher.coef * values["opd_kl"]
        if self.weighs_entropy:
            loss_N = loss_N - section.entropy_coef * known.entropy_N
        parts = {name: (known.weight_N * value_N.detach()).sum() for name, value_N in values.items()}
        return Loss(total=(known.weight_N * loss_N).sum(), parts=parts)

    def _check(self, inputs: LossInputs) -> None:
        old = "behavior" if self._section.old == "behavior" else "old"
        acts = {
            "logp": inputs.logp_N,
            old: inputs.old_N,
            "ref": inputs.ref_N,
            "advantage": inputs.advantage_N,
        }
        if "divergence" in self.needs:
            acts["divergence"] = inputs.columns["divergence"]
        if self.weighs_entropy:
            acts["entropy"] = inputs.entropy_N
        check_trained(inputs.mask_N, **acts)

    def _corrected(self, loss_N: Tensor, known: LossInputs) -> tuple[Tensor, dict[str, Tensor]]:
        """The policy loss after correction and sequence masking, with what they did."""
        values: dict[str, Tensor] = {}
        if self._rules is not None:
            correction = self._correction(known)
            loss_N = correction.weight_N * loss_N
            values["correction_weight"] = correction.weight_N
            values["correction_clip_frac"] = correction.clipped_N
            values["correction_reject_frac"] = correction.rejected_N
        if self._section.opsm_delta is not None:
            is_off_N = masked_off_policy(
                known.logp_N,
                known.behavior_N,
                advantage_N=known.advantage_N,
                mask_N=known.mask_N,
                sums=known.sums,
                delta=self._section.opsm_delta,
            )
            loss_N = torch.where(is_off_N, 0, loss_N)
            values["opsm_frac"] = is_off_N
        return loss_N, values

    def _correction(self, known: LossInputs) -> Correction:
        assert self._rules is not None
        column_N = known.columns.get(_MEAN_WEIGHT)
        return correct(
            known.old_N,
            known.behavior_N,
            rules=self._rules,
            mask_N=known.mask_N,
            sums=known.sums,
            mean_weight=None if column_N is None or len(column_N) == 0 else float(column_N.max()),
        )

    def _kl(self, known: LossInputs) -> Tensor:
        section = self._section
        old_N = known.old_N if section.kl_unbiased else None
        return estimate_kl(known.logp_N, known.ref_N, kind=section.kl_loss_type, old_N=old_N)


def needs_of(section: Algo, *, num_updates: int) -> frozenset[Need]:
    """What a step of `num_updates` updates needs before it."""
    own_old = section.old == "trainer"
    needs: set[Need] = set()
    if own_old and (
        num_updates > 1
        or section.kl_coef > 0
        or section.correction.normalize
        or (section.is_taught and section.teacher.form == "sampled")
    ):
        needs.add("old")
    if section.kl_loss_coef > 0 or section.kl_coef > 0:
        needs.add("ref")
    if section.advantage == "greedy":
        needs.add("greedy")
    if section.is_taught:
        needs.add("teacher" if section.teacher.form == "sampled" else "divergence")
    if section.advantage == "gae":
        needs |= {"values", "next_values"} if section.critic.bootstrap else {"values"}
    return frozenset(needs)


def _from_teacher(known: LossInputs) -> Tensor:
    """[N] the divergence of each token, or of the sampled tokens alone their share of it."""
    if "divergence" in known.columns:
        return known.columns["divergence"]
    teacher_N = known.columns["teacher"]
    return torch.where(teacher_N.isnan(), 0, known.logp_N - teacher_N)


def _clipped(surrogate: Surrogate, known: LossInputs) -> dict[str, Tensor]:
    return {
        "pg_loss": surrogate.loss_N,
        "entropy": known.entropy_N,
        "ppo_kl": known.old_N - known.logp_N,
        "clip_frac_low": surrogate.clipped_low_N,
        "clip_frac_high": surrogate.clipped_high_N,
        "pg_clipfrac": surrogate.clipped_low_N | surrogate.clipped_high_N,
    }


def _trained_only(inputs: LossInputs) -> LossInputs:
    """The inputs with 0 where the weight is 0.

    0 · NaN is NaN, in the value and in the gradient, so an untrained token's missing log-prob would reach the
    sum (SkyRL#1635). Every column stays connected to the graph, even when no token is trained: a rank whose
    loss has no graph would leave the others waiting for its gradients.
    """
    is_trained_N = inputs.mask_N

    def keep(value_N: Tensor) -> Tensor:
        return torch.where(is_trained_N, value_N, 0)

    columns: Mapping[str, Tensor] = {name: keep(column_N) for name, column_N in inputs.columns.items()}
    return replace(
        inputs,
        logp_N=keep(inputs.logp_N),
        entropy_N=keep(inputs.entropy_N),
        old_N=keep(inputs.old_N),
        ref_N=keep(inputs.ref_N),
        behavior_N=keep(inputs.behavior_N),
        advantage_N=keep(inputs.advantage_N),
        columns=columns,
    )
