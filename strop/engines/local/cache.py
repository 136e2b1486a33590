"""The KV cache: rows of equal capacity, filled from row 0 without holes."""

from collections.abc import Sequence

import torch
from torch import Tensor

from strop.engines.local.capacity import rounded

# R rows, K key heads, S capacity in tokens, D head size


class KVCache:
    """Keys and values [R, K, S, D] of every layer. Rows 0 … n − 1 are in use; freed rows are closed up. All
    layers have one shape: one with a sliding window keeps tokens that it will not look at again.

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
        self.keys = [self._resized(i, self.keys, rows, capacity, in_use) for i in range(self._layers)]
        self.values = [self._resized(i, self.values, rows, capacity, in_use) for i in range(self._layers)]
        self.rows, self.capacity = rows, capacity

    def _resized(self, layer: int, old: list[Tensor], rows: int, capacity: int, in_use: int) -> Tensor:
        new_RKSD = torch.zeros(rows, self._heads, capacity, self._head_dim, dtype=self._dtype)
        if in_use:
            kept = min(capacity, self.capacity)
            new_RKSD[:in_use, :, :kept] = old[layer][:in_use, :, :kept]
        return new_RKSD

    def copy_row(self, source: int, target: int, length: int) -> None:
        """Give row `target` the first `length` tokens of row `source`."""
        for layer in range(self._layers):
            self.keys[layer][target, :, :length] = self.keys[layer][source, :, :length]
            self.values[layer][target, :, :length] = self.values[layer][source, :, :length]

    def clear(self) -> None:
        """Give the memory back."""
        self.keys, self.values, self.rows, self.capacity = [], [], 0, 0
