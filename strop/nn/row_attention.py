"""Attention of decoding in one pass over the keys and values of each row, where own code is the fastest.

What `shared_attention` computes by a product for each of its parts, with copies between them, which takes as
long as a third of the products of a small model.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.nn.attention import Rule
from strop.nn.own_code import WIDTH, is_measured, made_once
from strop.nn.shared_attention import Keys, Tail

# B rows, H query heads, K key heads, D head size, S prefixes of P tokens, M blocks of T own tokens

BLOCK = 2 * WIDTH
"""Tokens whose keys are side by side"""
MOST_HEADS = 6
"""Query heads at once: two registers of scores each, keys and a factor are fifteen registers."""
LEAST = 256
"""Numbers of a token's queries, with fewer of which making the code takes longer than it saves."""


def is_by_row(query_BHD: Tensor, prefixes: Keys, tail: Keys, rule: Rule) -> bool:
    """Whether `row_attention` does it, and is the fastest way: a team of threads splits torch's products."""
    return (
        rule.window is None
        and rule.softcap is None
        and query_BHD.is_cpu
        and query_BHD.dtype is torch.float32
        and query_BHD.shape[2] % WIDTH == 0
        and query_BHD.shape[1] * query_BHD.shape[2] >= LEAST
        and torch.get_num_threads() == 1
        and is_measured()
        and tail.keys.shape[2] == BLOCK
        and all(_is_laid_out(keys) for keys in (prefixes, tail))
    )


def _is_laid_out(keys: Keys) -> bool:
    """Keys by dimension, values by token, both in one piece; by blocks of tokens."""
    head, head_dim = keys.keys.stride(1), keys.keys.shape[3]
    tokens = head // head_dim
    return (
        tokens % BLOCK == 0
        and keys.keys.stride() == (keys.keys.shape[1] * head, head, 1, tokens)
        and keys.values.stride() == (keys.keys.shape[1] * head, head, head_dim, 1)
    )


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
    attend = _compiled(num_heads // num_key_heads, head_dim)
    space = torch.empty(MOST_HEADS * table.most_scores, dtype=torch.float32)
    keys, values = prefixes.keys, prefixes.values
    tensors = (query_BHD, keys, values, tail.keys, tail.values)
    attend(
        *(tensor.data_ptr() for tensor in tensors),
        *(table.rows.ctypes.data, table.blocks.ctypes.data, space.data_ptr(), out_BHD.data_ptr()),
        *(len(query_BHD), num_key_heads, *keys.stride()[:2], keys.stride(3), table.most_scores),
    )


@made_once
def _compiled(query_heads: int, head_dim: int) -> Callable[..., None]:
    """For so many query heads of a key head."""
    from strop.nn.machine_code import Compiled
    from strop.nn.row_attention_code import ADDRESSES, NUMBERS, module

    return Compiled(module(query_heads, head_dim)).function("attend", len(ADDRESSES), len(NUMBERS))
