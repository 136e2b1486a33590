"""`Spans`: stretches of tokens in which credit flows, from a reward back to what was sampled before it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# N tokens of S samples, end to end in R spans


@dataclass(frozen=True, slots=True)
class Spans:
    """Samples that are one span follow one another, in the order of the batch; an empty span is allowed.

    Which to choose decides what a trajectory of several samples learns. `of_trajectories`: a reward also
    reaches what earlier samples did, as if the trajectory were one sequence. `of_samples`: nothing crosses
    from one sample to another, so that each must have a reward of its own.
    """

    order_N: NDArray[np.int64]
    """Which token of the batch stands at each place."""
    offsets_R: NDArray[np.int64]
    """[R + 1] the places at which spans begin."""
    span_of_sample_S: NDArray[np.int64]

    @classmethod
    def of_samples(cls, offsets: NDArray[np.int64]) -> "Spans":
        """One a sample; `offsets` [S + 1] as in `Batch`."""
        return cls(np.arange(offsets[-1]), offsets, np.arange(len(offsets) - 1))

    @classmethod
    def of_trajectories(cls, offsets: NDArray[np.int64], trajectories: NDArray[np.int64]) -> "Spans":
        """One a trajectory [S]. Its samples need not be neighbours in the batch."""
        _, span_of_sample_S = np.unique(trajectories, return_inverse=True)
        samples = np.argsort(span_of_sample_S, kind="stable")
        lengths = np.diff(offsets)
        ends = np.cumsum(lengths[samples])
        shift = np.repeat(offsets[:-1][samples] - (ends - lengths[samples]), lengths[samples])
        sizes = np.bincount(span_of_sample_S, weights=lengths).astype(np.int64)
        offsets_R = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(np.arange(offsets[-1]) + shift, offsets_R, span_of_sample_S.astype(np.int64))

    def __len__(self) -> int:
        return len(self.offsets_R) - 1

    @property
    def filled(self) -> NDArray[np.int64]:
        """The spans that have a token."""
        return np.flatnonzero(np.diff(self.offsets_R))

    @property
    def last_places(self) -> NDArray[np.int64]:
        """The place of the last token of each `filled` span."""
        return self.offsets_R[self.filled + 1] - 1

    def back(self, column_N: NDArray[np.float64]) -> NDArray[np.float64]:
        """From the order of spans to that of the batch."""
        in_batch_N = np.empty_like(column_N)
        in_batch_N[self.order_N] = column_N
        return in_batch_N
