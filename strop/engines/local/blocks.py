"""What rows add to their prefixes: keys and values in blocks of tokens, without a hole between those in use.

Rows then cost what they are long, in memory and in products, however long others are (PagedAttention, Kwon
et al. 2023, §4.1; but as all blocks in use lie side by side, one product takes them all).
"""

import math
import mmap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from strop.engines.local.capacity import BLOCK_TOKENS
from strop.errors import EngineFailed
from strop.nn.shared_attention import Tail

# R rows, N blocks in use, M blocks that there is room for, K key heads, T tokens of a block, D head size


@dataclass(frozen=True, slots=True)
class Fed:
    """Rows that have been given one token more each; its keys and values are still to be written."""

    tail: Tail
    """Of all rows, N blocks"""
    block: Tensor
    """[R] where the new tokens go"""
    place: Tensor
    """[R] and which of the block's tokens they are"""


class Blocks:
    """Of every layer, keys and values [M, K, T, D], where M blocks hold `max_tokens`. Rows are numbered
    from 0 without holes.

    Of keys, the numbers of one dimension of a head lie side by side, token after token: see `row_attention`.

    Room is asked for once, and only what is used of it takes memory. Entries of a block that are not yet
    written are zeros or another row's: a masked key must still be a number.
    """

    def __init__(
        self, *, layers: int, heads: int, head_dim: int, dtype: torch.dtype, max_tokens: int
    ) -> None:
        self._layers, self._dtype = layers, dtype
        self._shape = max_tokens // BLOCK_TOKENS, heads, BLOCK_TOKENS, head_dim
        self.clear()

    def clear(self) -> None:
        """Give rows and memory back."""
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        self._touched = 0
        """Blocks that have been in use"""
        self.drop_all()

    def drop_all(self) -> None:
        """Give rows back."""
        self._lengths: list[int] = []
        self._of_row: list[list[int]] = []
        """The blocks of each row, in the order of its tokens"""
        self._row_of: list[int] = []
        self._first: list[int] = []

    @property
    def tokens(self) -> int:
        """That memory is taken for."""
        return self._touched * BLOCK_TOKENS

    @property
    def num_rows(self) -> int:
        return len(self._of_row)

    def add_rows(self, num: int) -> None:
        """Without tokens; numbered after those that are there. Where none are, memory is taken anew."""
        if num and not self.num_rows:
            self.clear()
            blocks, heads, tokens, head_dim = self._shape
            by_dimension = blocks, heads, head_dim, tokens
            self.keys = [_room(by_dimension, self._dtype).transpose(2, 3) for _ in range(self._layers)]
            self.values = [_room(self._shape, self._dtype) for _ in range(self._layers)]
        self._lengths += [0] * num
        self._of_row += [[] for _ in range(num)]

    def feed(self) -> Fed:
        """Make place for one token more in every row."""
        size = self._shape[2]
        for row, length in enumerate(self._lengths):
            if length % size == 0:
                self._of_row[row].append(len(self._row_of))
                self._row_of.append(row)
                self._first.append(length)
            self._lengths[row] = length + 1
        self._touched = max(self._touched, len(self._row_of))
        lengths = np.array(self._lengths, np.int64)
        last = np.array([blocks[-1] for blocks in self._of_row], np.int64)
        row_of, first = np.array(self._row_of, np.int64), np.array(self._first, np.int64)
        tail = Tail(lengths, row_of, first)
        return Fed(tail, torch.from_numpy(last), torch.from_numpy((lengths - 1) % size))

    def put(self, layer: int, fed: Fed, keys_RKD: Tensor, values_RKD: Tensor) -> None:
        """Write the new tokens."""
        self.keys[layer][fed.block, :, fed.place] = keys_RKD
        self.values[layer][fed.block, :, fed.place] = values_RKD

    def give_last(self, num: int, to: "Blocks") -> None:
        """Let the last rows be the last of other blocks."""
        start, leaving = to.num_rows, range(self.num_rows - num, self.num_rows)
        to.add_rows(num)
        sources = [block for row in leaving for block in self._of_row[row]]
        first_target = len(to._row_of)
        for new, row in enumerate(leaving, start):
            for block in self._of_row[row]:
                to._of_row[new].append(len(to._row_of))
                to._row_of.append(new)
                to._first.append(self._first[block])
            to._lengths[new] = self._lengths[row]
        targets, out = slice(first_target, len(to._row_of)), torch.tensor(sources, dtype=torch.int64)
        to._touched = max(to._touched, len(to._row_of))
        for target_MKTD, source_MKTD in zip((*to.keys, *to.values), (*self.keys, *self.values), strict=True):
            target_MKTD[targets] = source_MKTD[out]
        self.drop(leaving)

    def drop(self, rows: Iterable[int]) -> None:
        """Take rows out, the last first; each time the last that stays takes the number of the one that left.
        The blocks behind the remaining ones move into the holes."""
        holes: list[int] = []
        for row in sorted(rows, reverse=True):
            holes += self._of_row[row]
            blocks, length = self._of_row.pop(), self._lengths.pop()
            if row < len(self._of_row):
                self._of_row[row], self._lengths[row] = blocks, length
                for block in blocks:
                    self._row_of[block] = row
        self._close(holes)

    def _close(self, holes: Sequence[int]) -> None:
        stay = len(self._row_of) - len(holes)
        gone = set(holes)
        moved = [block for block in range(stay, len(self._row_of)) if block not in gone]
        targets = [hole for hole in holes if hole < stay]
        for source, target in zip(moved, targets, strict=True):
            row, first = self._row_of[source], self._first[source]
            self._row_of[target], self._first[target] = row, first
            self._of_row[row][first // BLOCK_TOKENS] = target
        del self._row_of[stay:], self._first[stay:]
        if moved:
            into, out = torch.tensor(targets), torch.tensor(moved)
            for cache_MKTD in (*self.keys, *self.values):
                cache_MKTD[into] = cache_MKTD[out]


def _room(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Zeros, of which what is never written takes no memory; torch's own are written, or may be anything.
    What they took goes back to the machine with them: memory of the heap would stay, between other things.
    Raises EngineFailed where the machine grants no addresses for it."""
    num_bytes = math.prod(shape) * dtype.itemsize
    try:
        pages = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise EngineFailed(
            f"engine.max_tokens = {shape[0] * BLOCK_TOKENS:,}: the machine grants no "
            f"{num_bytes / 2**30:,.1f} GiB of addresses more for a layer "
            "(`ulimit -v`, or strict overcommit); lower it"
        ) from error
    return torch.frombuffer(pages, dtype=dtype).view(shape)
