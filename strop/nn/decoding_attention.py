"""Attention of decoding, one query a row, over its prefix and its own tokens: by whichever way is fastest."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.nn.attention import Rule
from strop.nn.row_attention import RowTable, is_by_row, row_attention
from strop.nn.shared_attention import Keys, Rows, Tail, rows_at, shared_attention

# B rows, H query heads, D head size


class Seen:
    """What B rows look at in a step; those of one tail follow those of the tail before."""

    def __init__(
        self, prefix_of_row: NDArray[np.int64], prefix_lengths: NDArray[np.int64], tails: Sequence[Tail]
    ) -> None:
        self._prefix_of_row, self._prefix_lengths, self.tails = prefix_of_row, prefix_lengths, tails
        starts = np.cumsum([0, *(len(tail.lengths) for tail in tails)]).tolist()
        self.parts = [slice(start, stop) for start, stop in pairwise(starts)]
        """The rows of each tail"""

    @cached_property
    def together(self) -> Rows:
        """For all rows at once."""
        return rows_at(self._prefix_of_row, self._prefix_lengths, self.tails)

    @cached_property
    def one_by_one(self) -> list[RowTable]:
        """For the rows of each tail."""
        return [
            RowTable(self._prefix_of_row[part], self._prefix_lengths, tail)
            for part, tail in zip(self.parts, self.tails, strict=True)
        ]


def decoding_attention(
    query_BHD: Tensor, prefixes: Keys, tails: Sequence[Keys], seen: Seen, rule: Rule
) -> Tensor:
    """[B, H, D]. Keys that no row may look at must still be numbers."""
    if not is_by_row(query_BHD, prefixes, tails[0], rule):
        before = slice(seen.together.prefix_tokens)
        shown = Keys(prefixes.keys[:, :, before], prefixes.values[:, :, before])
        return shared_attention(query_BHD, shown, tails, seen.together, rule)
    query_BHD = query_BHD.contiguous() * rule.scale
    out_BHD = torch.empty_like(query_BHD)
    for part, tail, table in zip(seen.parts, tails, seen.one_by_one, strict=True):
        row_attention(query_BHD[part], prefixes, tail, table, out_BHD=out_BHD[part])
    return out_BHD
