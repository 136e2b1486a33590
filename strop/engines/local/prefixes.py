"""`Prefix`: ids that are computed once for all sequences that begin with them, and where to begin."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

LEAST_SHARED = 16
"""Beginnings that two prefixes share are worth a pass of their own from so many tokens on."""


@dataclass(slots=True, eq=False)
class Prefix:
    """In the cache while sequences use it."""

    ids: NDArray[np.int32]
    slot: int
    """Its row in the cache of prefixes."""
    users: int = 0
    hidden_D: Tensor | None = None
    """Of its last token, once it is computed: what the next token is drawn from."""


@dataclass(frozen=True, slots=True)
class Part:
    """What is computed of a prefix; its first `shared` tokens are those of `source`."""

    prefix: Prefix
    source: Prefix | None = None
    shared: int = 0

    @property
    def num_tokens(self) -> int:
        return len(self.prefix.ids) - self.shared


def parts_of(new: Sequence[Prefix], known: Sequence[Prefix]) -> list[list[Part]]:
    """Two passes: prefixes that begin like no other, then those that go on from one of these, or from one of
    `known`: chat templates put the same words before every prompt."""
    first: list[Part] = []
    then: list[Part] = []
    sources = list(known)
    for prefix in new:
        shared, source = max(
            ((common(prefix.ids, s.ids), s) for s in sources), key=_length, default=(0, None)
        )
        if source is not None and shared >= LEAST_SHARED:
            then.append(Part(prefix, source, shared))
        else:
            first.append(Part(prefix))
            sources.append(prefix)
    return [first, then]


def _length(found: tuple[int, Prefix]) -> int:
    return found[0]


def common(ids: NDArray[np.int32], others: NDArray[np.int32]) -> int:
    """How many tokens the two begin with alike, the last of `ids` left out: it is computed in any case."""
    most = min(len(ids) - 1, len(others))
    differ = np.flatnonzero(ids[:most] != others[:most])
    return int(differ[0]) if len(differ) else most
