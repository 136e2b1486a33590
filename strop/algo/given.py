"""What the algorithms have in common whose groups are given by data: sums over samples that carry a gradient,
and a judgement of held-out rows by the loss itself."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.algo.aggregate import token_weights
from strop.algo.base import Algorithm, Loss, LossInputs
from strop.algo.batch import Batch
from strop.algo.finite import check_trained
from strop.algo.sequence import sums_by_sample

# N tokens, S samples, M trained tokens, R rows of data


@dataclass(frozen=True, slots=True)
class Responses:
    """The S samples of a micro-batch, in order, by sums over their trained tokens."""

    rows_S: Tensor
    """Of the samples in the batch."""
    logp_S: Tensor
    """Carries the gradient."""
    ref_S: Tensor
    length_S: Tensor
    """Trained tokens, at least 1."""
    weight_S: Tensor
    """Σ of the weights of their tokens."""
    columns: Mapping[str, Tensor]
    """[S] further columns, each of a sample's first token."""

    @classmethod
    def of(cls, inputs: LossInputs) -> "Responses":
        """Samples without a trained token are not in it; what untrained tokens hold is ignored, also NaN.
        Raises NonFinite for a trained token whose log-prob, or the reference's, is not a number."""
        check_trained(inputs.mask_N, logp=inputs.logp_N, ref=inputs.ref_N)
        at = inputs.mask_N.nonzero()[:, 0]
        rows_S, place_M = torch.unique(inputs.sample_N[at], return_inverse=True)
        first_S = torch.searchsorted(place_M, torch.arange(len(rows_S)))

        def total(value_N: Tensor) -> Tensor:
            value_M = value_N[at].double()
            return value_M.new_zeros(len(rows_S)).index_add(0, place_M, value_M)

        return cls(
            rows_S=rows_S,
            logp_S=total(inputs.logp_N),
            ref_S=total(inputs.ref_N),
            length_S=total(torch.ones_like(inputs.weight_N)),
            weight_S=total(inputs.weight_N),
            columns={name: column_N[at][first_S] for name, column_N in inputs.columns.items()},
        )


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What an evaluation averages, one number a row of data: Σ weight · value / Σ weight."""

    value_R: NDArray[np.float64]
    weight_R: NDArray[np.float64]


def whole_loss(algorithm: Algorithm, batch: Batch) -> Loss:
    """Of a batch as one update without gradient, by the log-probs in `batch.scored`."""
    old_N, sample_N = torch.from_numpy(batch.scored["old"]), torch.from_numpy(batch.sample_of_token)
    scored = {name: torch.from_numpy(column) for name, column in batch.scored.items()}
    return algorithm.loss(
        LossInputs(
            logp_N=old_N,
            entropy_N=torch.zeros_like(old_N),
            old_N=old_N,
            ref_N=scored.get("ref", old_N),
            behavior_N=torch.from_numpy(batch.behavior),
            advantage_N=torch.from_numpy(batch.advantage),
            weight_N=torch.from_numpy(algorithm.weights(batch)),
            sums=sums_by_sample(sample_N),
            sample_N=sample_N,
            columns={name: column for name, column in scored.items() if name not in ("old", "ref")},
        )
    )


def sample_sums(batch: Batch, value_N: NDArray[np.floating]) -> NDArray[np.float64]:
    """[S] of the tokens in each sample's own mask, whether the sample is removed or not."""
    trained_N = np.concatenate([s.sequence.mask[s.prompt_length :] for s in batch.samples])
    known_N = np.where(trained_N, value_N, 0).astype(np.float64)
    sums_S = np.zeros(len(batch.samples), np.float64)
    np.add.at(sums_S, batch.sample_of_token, known_N)
    return sums_S


def every_response(batch: Batch) -> NDArray[np.bool_]:
    """[S] samples with a trained token."""
    return np.bincount(batch.sample_of_token, weights=batch.mask, minlength=len(batch.samples)) > 0


def mean_over_samples(batch: Batch) -> NDArray[np.float32]:
    """[N] weights by which the responses of an update count the same: 1 / (responses · tokens of its own)."""
    return token_weights(
        "seq_mean_token_mean",
        mask=batch.mask,
        trajectory_of_token=batch.sample_of_token,
        update_of_token=batch.update[batch.sample_of_token],
        constant=1,
    )
