"""`Tokens`: ids, masks, log-probs and weight versions of T tokens, side by side.

The one place where these arrays are held together, so their lengths can only disagree here, and here they
are checked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


class MalformedTokens(ValueError):
    """`Tokens` whose arrays cannot be true together. A bug in whoever made them, hence not an InputError."""


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """T tokens: int32 ids, bool sampled, bool mask, float32 behavior, int32 versions; all of length T.

    `sampled`: made by the policy. `mask`: trained, a subset of sampled. `behavior`: log-prob under the
    effective sampling distribution, NaN where not sampled. `versions`: of the weights that sampled the
    token, −1 where not sampled. The arrays are read-only.
    """

    ids: NDArray[np.int32]
    sampled: NDArray[np.bool_]
    mask: NDArray[np.bool_]
    behavior: NDArray[np.float32]
    versions: NDArray[np.int32]

    def __post_init__(self) -> None:
        dtypes = (np.int32, np.bool_, np.bool_, np.float32, np.int32)
        for spec, dtype in zip(fields(self), dtypes, strict=True):
            array: NDArray[Any] = np.array(getattr(self, spec.name), dtype=dtype)
            array.flags.writeable = False
            object.__setattr__(self, spec.name, array)
        self._check()

    def _check(self) -> None:
        shapes = {spec.name: getattr(self, spec.name).shape for spec in fields(self)}
        if any(shape != self.ids.shape or len(shape) != 1 for shape in shapes.values()):
            raise MalformedTokens(f"Tokens need five arrays of one length, got {shapes}")
        rules = {
            "ids must be ≥ 0": self.ids >= 0,
            "mask may only hold where sampled does": ~self.mask | self.sampled,
            "behavior must be a log-prob (finite, ≤ 0) where sampled": ~self.sampled
            | (np.isfinite(self.behavior) & (np.nan_to_num(self.behavior) <= 0)),
            "behavior must be NaN where not sampled": self.sampled | np.isnan(self.behavior),
            "versions must be ≥ 0 where sampled and −1 elsewhere": np.where(
                self.sampled, self.versions >= 0, self.versions == -1
            ),
        }
        for rule, holds in rules.items():
            if not holds.all():
                raise MalformedTokens(f"Tokens: {rule}; it does not at position {int(np.argmin(holds))}")

    @classmethod
    def context(cls, ids: Sequence[int] | NDArray[np.int32]) -> "Tokens":
        """Tokens that the policy did not make: prompt, template, tool and user."""
        n = len(ids)
        no = np.zeros(n, bool)
        return cls(
            np.asarray(ids, np.int32), no, no, np.full(n, np.nan, np.float32), np.full(n, -1, np.int32)
        )

    @classmethod
    def drawn(
        cls,
        ids: Sequence[int] | NDArray[np.int32],
        logp: Sequence[float] | NDArray[np.float32],
        versions: Sequence[int] | NDArray[np.int32],
    ) -> "Tokens":
        """Tokens that the policy sampled; all of them are trained."""
        yes = np.ones(len(ids), bool)
        return cls(
            np.asarray(ids, np.int32),
            yes,
            yes,
            np.asarray(logp, np.float32),
            np.asarray(versions, np.int32),
        )

    def __len__(self) -> int:
        return len(self.ids)

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(
            *(np.concatenate([getattr(self, s.name), getattr(other, s.name)]) for s in fields(self))
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokens) and all(
            np.array_equal(getattr(self, s.name), getattr(other, s.name), equal_nan=s.name == "behavior")
            for s in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]

    def untrained(self) -> "Tokens":
        """The same tokens with an empty mask."""
        return replace(self, mask=np.zeros(len(self), bool))
