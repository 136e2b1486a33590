"""The KV cache of prefixes: rows of equal capacity, filled from row 0 without holes."""

from collections.abc import Sequence

import torch
from torch import Tensor

from strop.engines.local.capacity import rounded

# R rows, K key heads, S capacity in tokens, D head size


class KVCache:
    """Keys and values [R, K, S, D] of every layer. Rows 0 … n − 1 are in use; freed rows are closed up. All
    layers have one shape: one with a sliding window keeps tokens that it will not look at again.

    Of keys, the numbers of one dimension of a head lie side by side, token after token: many queries then
    multiply the keys of a row in less time.

    Entries that are not yet written are zeros or another sequence's: a masked key must still be a number.
    """

    def __init__(self, *, layers: int, heads: int, head_dim: int, dtype: torch.dtype) -> None:
        self._layers, self._heads, self._head_dim, self._dtype = layers, heads, head_dim, dtype
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        self.rows = 0
        self.capacity = 0

    @property
    def tokens(self) -> int:
        """That there is room for."""
        return self.rows * self.capacity

    def reserve(self, tokens: Sequence[int], *, in_use: int) -> None:
        """Room for further rows of so many tokens; an empty cache that is much too large is made anew."""
        rows = in_use + len(tokens)
        capacity = max(self.capacity if in_use else 0, *(rounded(n) for n in tokens), 0)
        fits = capacity == self.capacity and rows <= self.rows
        wastes = in_use == 0 and self.rows > 2 * rows
        if rows and (not fits or wastes):
            self.shape(rows, capacity, in_use=in_use)

    def shape(self, rows: int, capacity: int, *, in_use: int) -> None:
        """Make room for `rows` sequences of `capacity` tokens, keeping the first `in_use` rows."""
        if in_use == 0:
            self.clear()  # before the new one is made: the two together would be the peak of the process
        self.keys = self._resized(self.keys, rows, capacity, in_use, across=True)
        self.values = self._resized(self.values, rows, capacity, in_use, across=False)
        self.rows, self.capacity = rows, capacity

    def _resized(
        self, old: list[Tensor], rows: int, capacity: int, in_use: int, *, across: bool
    ) -> list[Tensor]:
        new = [self._empty(rows, capacity, across=across) for _ in range(self._layers)]
        if in_use:
            kept = min(capacity, self.capacity)
            for new_RKSD, old_RKSD in zip(new, old, strict=True):
                new_RKSD[:in_use, :, :kept] = old_RKSD[:in_use, :, :kept]
        return new

    def _empty(self, rows: int, capacity: int, *, across: bool) -> Tensor:
        inner = (self._head_dim, capacity) if across else (capacity, self._head_dim)
        new = torch.zeros(rows, self._heads, *inner, dtype=self._dtype)
        return new.transpose(2, 3) if across else new

    def copy_row(self, source: int, target: int, length: int) -> None:
        """Give row `target` the first `length` tokens of row `source`."""
        for layer in range(self._layers):
            self.keys[layer][target, :, :length] = self.keys[layer][source, :, :length]
            self.values[layer][target, :, :length] = self.values[layer][source, :, :length]

    def clear(self) -> None:
        """Give the memory back."""
        self.keys, self.values, self.rows, self.capacity = [], [], 0, 0
