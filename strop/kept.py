"""`Kept`: the ids that each of T tokens was drawn from, end to end; an empty span is the whole vocabulary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strop.tokens import MalformedTokens

IDS, OFFSETS = "top_p_token_ids", "top_p_token_offsets"
"""Under which extras of samples and completions hold them."""


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """T spans; that of token t is `ids[offsets[t] : offsets[t + 1]]`. Tool tokens have empty ones."""

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    """[T + 1], from 0."""

    @classmethod
    def of_spans(cls, spans: Sequence[NDArray[np.int32]]) -> "Kept":
        """One array of ids a token."""
        lengths = [len(span) for span in spans]
        return cls(
            np.concatenate([np.zeros(0, np.int32), *spans]),
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        )

    @classmethod
    def of_extras(cls, extras: Mapping[str, NDArray[Any]], num_tokens: int) -> "Kept":
        """As the extras of a sample or completion have it; empty spans where they have none. Raises
        MalformedTokens when they do not fit `num_tokens` tokens."""
        if OFFSETS not in extras:
            return cls(np.zeros(0, np.int32), np.zeros(num_tokens + 1, np.int64))
        kept = cls(extras[IDS].astype(np.int32, copy=False), extras[OFFSETS].astype(np.int64, copy=False))
        ends_fit = len(kept.offsets) == num_tokens + 1 and kept.offsets[[0, -1]].tolist() == [
            0,
            len(kept.ids),
        ]
        if not ends_fit or (kept.lengths < 0).any():
            raise MalformedTokens(
                f"{OFFSETS} must rise from 0 to {len(kept.ids)} in {num_tokens + 1} numbers, got "
                f"{len(kept.offsets)} numbers"
            )
        return kept

    @classmethod
    def joined(cls, parts: Sequence["Kept"]) -> "Kept":
        """All of them end to end."""
        lengths = np.concatenate([np.zeros(0, np.int64), *(part.lengths for part in parts)])
        ids = np.concatenate([np.zeros(0, np.int32), *(part.ids for part in parts)])
        return cls(ids, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """[T] size of each set."""
        return np.diff(self.offsets)

    def take(self, at: NDArray[np.int64]) -> "Kept":
        """The spans of tokens `at`, in this order."""
        lengths = self.lengths[at]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        # id j of the result stands as far behind the start of its span as it does here
        where = np.arange(offsets[-1]) + np.repeat(self.offsets[at] - offsets[:-1], lengths)
        return Kept(self.ids[where], offsets)

    def lacks(self, targets: NDArray[np.int32]) -> NDArray[np.bool_]:
        """[T] whether a token has a set that it is not in itself."""
        owner = np.repeat(np.arange(len(self)), self.lengths)
        found = np.bincount(owner[self.ids == targets[owner]], minlength=len(self)) > 0
        return (self.lengths > 0) & ~found

    def as_extras(self) -> dict[str, NDArray[Any]]:
        """For `of_extras`."""
        return {IDS: self.ids, OFFSETS: self.offsets}
