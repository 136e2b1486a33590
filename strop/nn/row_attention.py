"""Attention of decoding in one pass over the keys and values of each row, where own code is the fastest.

What `shared_attention` computes by a product for each of its parts, with copies between them, which takes as
long as a third of the products of a small model.
"""

from collections.abc import Callable
from functools import cache
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.nn.attention import Rule
from strop.nn.machine_code import WIDTH, Compiled, is_measured
from strop.nn.row_attention_code import ADDRESSES, BLOCK, MOST_HEADS, NUMBERS, module
from strop.nn.shared_attention import Keys, Tail

# B rows, H query heads, K key heads, D head size, S prefixes of P tokens, M blocks of T own tokens


def is_by_row(query_BHD: Tensor, prefixes: Keys, tail: Keys, rule: Rule) -> bool:
    """Whether `row_attention` does it, and is the fastest way: a team of threads splits torch's products."""
    return (
        rule.window is None
        and rule.softcap is None
        and query_BHD.dtype is torch.float32
        and query_BHD.shape[2] % WIDTH == 0
        and torch.get_num_threads() == 1
        and is_measured()
        and all(_is_by_dimension(keys) for keys in (prefixes.keys, tail.keys))
    )


def _is_by_dimension(keys: Tensor) -> bool:
    return keys.stride(2) == 1 and keys.stride(3) % BLOCK == 0


class RowTable:
    """What some rows look at, the same for all layers of a step."""

    def __init__(
        self, prefix_of_row: NDArray[np.int64], prefix_lengths: NDArray[np.int64], tail: Tail
    ) -> None:
        blocks = -(-tail.lengths // BLOCK)
        lengths = prefix_lengths[prefix_of_row]
        fields = (prefix_of_row, lengths, tail.lengths, np.cumsum(blocks) - blocks, np.arange(len(blocks)))
        order = np.argsort(prefix_of_row, kind="stable")  # a prefix that was just read is in a near cache
        self.rows = np.ascontiguousarray(np.stack(fields, 1)[order])
        self.blocks = np.lexsort((tail.first, tail.row_of))
        self.most_scores = int((lengths + tail.lengths).max()) + 2 * BLOCK


def row_attention(query_BHD: Tensor, prefixes: Keys, tail: Keys, table: RowTable, *, out_BHD: Tensor) -> None:
    """Write what `shared_attention` gives for the rows of one tail, whose queries are scaled, to `out`."""
    (_, num_heads, head_dim), num_key_heads = query_BHD.shape, prefixes.keys.shape[1]
    with _making:
        attend = _compiled(num_heads // num_key_heads, head_dim)
    space = torch.empty(MOST_HEADS * table.most_scores)
    keys, values = prefixes.keys, prefixes.values
    tensors = (query_BHD, keys, values, tail.keys, tail.values)
    attend(
        *(tensor.data_ptr() for tensor in tensors),
        *(table.rows.ctypes.data, table.blocks.ctypes.data, space.data_ptr(), out_BHD.data_ptr()),
        *(len(query_BHD), num_key_heads, *keys.stride()[:2], keys.stride(3), table.most_scores),
    )


_making = Lock()


@cache
def _compiled(query_heads: int, head_dim: int) -> Callable[..., None]:
    """For so many query heads of a key head."""
    return Compiled(module(query_heads, head_dim)).function("attend", len(ADDRESSES), len(NUMBERS))
