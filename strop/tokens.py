"""`Tokens`: ids, masks, log-probs and weight versions of T tokens, side by side.

The one place where these arrays are held together, so their lengths can only disagree here, and here they
are checked.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


class MalformedTokens(ValueError):
    """`Tokens` whose arrays cannot be true together. A bug in whoever made them, hence not an InputError."""


_COLUMNS: dict[str, type[np.generic]] = {
    "ids": np.int32,
    "sampled": np.bool_,
    "mask": np.bool_,
    "behavior": np.float32,
    "versions": np.int32,
}


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """T tokens: int32 ids, bool sampled, bool mask, float32 behavior, int32 versions; all of length T.

    `sampled`: made by the policy. `mask`: trained, a subset of sampled, or of all tokens where the policy
    made none: then they are given by data. `behavior`: log-prob under the effective sampling distribution,
    NaN where not sampled. `versions`: of the weights that sampled the token, −1 where not sampled. The arrays
    are read-only.
    """

    ids: NDArray[np.int32]
    sampled: NDArray[np.bool_]
    mask: NDArray[np.bool_]
    behavior: NDArray[np.float32]
    versions: NDArray[np.int32]

    def __post_init__(self) -> None:
        for name, dtype in _COLUMNS.items():
            object.__setattr__(self, name, _frozen(np.array(getattr(self, name), dtype=dtype)))
        self._check()

    @property
    def _is_even(self) -> bool:
        shape = self.ids.shape
        others = (self.sampled, self.mask, self.behavior, self.versions)
        return len(shape) == 1 and all(column.shape == shape for column in others)

    @property
    def _is_sound_draw(self) -> bool:
        """Of tokens that are all sampled and trained: what `_check` finds, in the few passes that every
        sample can afford."""
        if not self._is_even or not len(self):
            return False
        is_logp = self.behavior.max() <= 0 and self.behavior.min() > -np.inf
        return bool(is_logp and self.ids.min() >= 0 and self.versions.min() >= 0)

    def _check(self) -> None:
        if not self._is_even:
            shapes = {name: getattr(self, name).shape for name in _COLUMNS}
            raise MalformedTokens(f"Tokens need five arrays of one length, got {shapes}")
        known = ~np.isnan(self.behavior)
        with np.errstate(invalid="ignore"):
            rules = {
                "ids must be ≥ 0": self.ids >= 0,
                "mask may only hold where sampled does": (self.mask <= self.sampled) | ~self.sampled.any(),
                "behavior must be a log-prob (finite, ≤ 0) where sampled": ~self.sampled
                | ((self.behavior <= 0) & (self.behavior > -np.inf)),
                "behavior must be NaN where not sampled": known <= self.sampled,
                "versions must be ≥ 0 where sampled and −1 elsewhere": np.where(
                    self.sampled, self.versions >= 0, self.versions == -1
                ),
            }
        for rule, holds in rules.items():
            if not holds.all():
                raise MalformedTokens(f"Tokens: {rule}; it does not at position {int(np.argmin(holds))}")

    @classmethod
    def _whole(cls, columns: Iterable[NDArray[Any]]) -> "Tokens":
        """From columns of the right types that come from checked Tokens, position by position: a part of
        what is well formed, or two such end to end, is well formed too."""
        made = object.__new__(cls)
        for name, column in zip(_COLUMNS, columns, strict=True):
            column.setflags(write=False)
            object.__setattr__(made, name, column)
        return made

    @classmethod
    def context(cls, ids: Sequence[int] | NDArray[np.int32]) -> "Tokens":
        """Tokens that the policy did not make: prompt, template, tool and user."""
        n = len(ids)
        no = np.zeros(n, bool)
        unknown, never = np.full(n, np.nan, np.float32), np.full(n, -1, np.int32)
        made = cls._whole((np.array(ids, np.int32), no, no, unknown, never))
        if made.ids.ndim != 1 or made.ids.min(initial=0) < 0:
            made._check()
        return made

    @classmethod
    def drawn(
        cls,
        ids: Sequence[int] | NDArray[np.int32],
        logp: Sequence[float] | NDArray[np.float32],
        versions: Sequence[int] | NDArray[np.int32],
    ) -> "Tokens":
        """Tokens that the policy sampled; all of them are trained."""
        yes = np.ones(len(ids), bool)
        made = cls._whole(
            (np.array(ids, np.int32), yes, yes, np.array(logp, np.float32), np.array(versions, np.int32))
        )
        if not made._is_sound_draw:
            made._check()
        return made

    @classmethod
    def given(
        cls, ids: Sequence[int] | NDArray[np.int32], mask: Sequence[bool] | NDArray[np.bool_]
    ) -> "Tokens":
        """Tokens that data gives, none of them made by the policy; those of `mask` are trained."""
        never = cls.context(ids)
        return cls(never.ids, never.sampled, np.array(mask, bool), never.behavior, never.versions)

    @property
    def is_given(self) -> bool:
        """Whether what is trained was given by data instead of sampled."""
        return bool(self.mask.any() and not self.sampled.any())

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Tokens whose log-prob the trainer computes: the sampled ones; of given tokens those that are
        trained."""
        return self.mask if self.is_given else self.sampled

    def __len__(self) -> int:
        return len(self.ids)

    def __add__(self, other: "Tokens") -> "Tokens":
        made = Tokens._whole(np.concatenate([getattr(self, n), getattr(other, n)]) for n in _COLUMNS)
        if self.is_given or other.is_given:  # well formed alone, not beside sampled tokens
            made._check()
        return made

    def after(self, start: int) -> "Tokens":
        """The tokens from position `start` on."""
        return Tokens._whole(getattr(self, name)[start:] for name in _COLUMNS)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokens) and all(
            np.array_equal(getattr(self, name), getattr(other, name), equal_nan=name == "behavior")
            for name in _COLUMNS
        )

    __hash__ = None  # type: ignore[assignment]

    def untrained(self) -> "Tokens":
        """The same tokens with an empty mask."""
        return replace(self, mask=np.zeros(len(self), bool))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
