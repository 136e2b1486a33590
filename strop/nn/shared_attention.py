"""Attention of decoding: one query a row, over a prefix that rows share and over the row's own tokens.

The keys of a prefix are read once for all of its rows, in one product of a size that is worth a product
(Hydragen, Juravsky et al. 2024, §3.2, with the two parts' scores under one softmax instead of two).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.nn.attention import Rule

# B rows, H query heads, K key heads, G query heads of a key head, D head size
# S prefixes of P tokens, N seats at each, L own tokens of a row

_MOST_EMPTY = 2
"""Prefixes with very different numbers of rows are taken apart when more than every other seat is empty."""


@dataclass(frozen=True, slots=True)
class Keys:
    """[S, K, P, D] each, of prefixes; or [B, K, L, D], of rows."""

    keys: Tensor
    values: Tensor


@dataclass(frozen=True, slots=True)
class Seats:
    """Rows at some of the prefixes, N seats at each; a seat may stay empty."""

    rows: Tensor | slice
    prefixes: Tensor | slice
    num_prefixes: int
    num_seats: int
    prefix: Tensor
    """[rows] at which of `prefixes`"""
    seat: Tensor
    """[rows]"""


@dataclass(frozen=True, slots=True)
class Rows:
    """What B rows look at, the same for all layers of a step."""

    seats: list[Seats]
    mask: Callable[[int | None], Tensor]
    """By the window of a layer: [B, 1, 1, P + L], True where a row may look."""
    num_prefixes: int
    prefix_tokens: int
    """P: of the longest prefix"""
    own_tokens: int
    """L: of the longest row"""


def rows_at(
    prefix_of_row: NDArray[np.int64], prefix_lengths: NDArray[np.int64], own: NDArray[np.int64]
) -> Rows:
    """`own`: [B] place of each row's new token among its own tokens."""
    lengths_B = torch.from_numpy(prefix_lengths[prefix_of_row])[:, None]
    own_B, P, L = torch.from_numpy(own)[:, None], int(prefix_lengths.max()), int(own.max()) + 1
    keys_P, keys_L = torch.arange(P), torch.arange(L)

    @cache
    def mask(window: int | None) -> Tensor:
        seen = torch.cat([keys_P < lengths_B, keys_L <= own_B], 1)
        if window is not None:
            first_B = lengths_B + own_B - window
            seen &= torch.cat([(keys_P > first_B), (lengths_B + keys_L > first_B)], 1)
        return seen[:, None, None, :]

    return Rows(_seats(prefix_of_row, len(prefix_lengths)), mask, len(prefix_lengths), P, L)


def _seats(prefix_of_row: NDArray[np.int64], num_prefixes: int) -> list[Seats]:
    counts = np.bincount(prefix_of_row, minlength=num_prefixes)
    order = np.argsort(prefix_of_row, kind="stable")
    seat = np.empty_like(prefix_of_row)
    seat[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    everything = slice(None)
    if num_prefixes * counts.max() <= _MOST_EMPTY * len(prefix_of_row):
        at = torch.from_numpy(prefix_of_row)
        return [Seats(everything, everything, num_prefixes, int(counts.max()), at, torch.from_numpy(seat))]
    sizes = np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64)
    found = []
    for size in np.unique(sizes[counts > 0]):
        prefixes = np.flatnonzero((sizes == size) & (counts > 0))
        rows = np.flatnonzero(np.isin(prefix_of_row, prefixes))
        found.append(
            Seats(
                torch.from_numpy(rows),
                torch.from_numpy(prefixes),
                len(prefixes),
                int(counts[prefixes].max()),
                torch.from_numpy(np.searchsorted(prefixes, prefix_of_row[rows])),
                torch.from_numpy(seat[rows]),
            )
        )
    return found


def shared_attention(query_BHD: Tensor, prefixes: Keys, own: Keys, rows: Rows, rule: Rule) -> Tensor:
    """[B, H, D]. A key that no row may look at must still be a number."""
    B, H, D = query_BHD.shape
    K = own.keys.shape[1]
    query_BKGD = (query_BHD * rule.scale).reshape(B, K, H // K, D)
    scores = torch.cat(
        [_prefix_scores(query_BKGD, prefixes.keys, rows), _products(query_BKGD, own.keys.transpose(2, 3))], -1
    )
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if rule.softcap is not None:
        scores = scores.div_(rule.softcap).tanh_().mul_(rule.softcap)
    scores.masked_fill_(~rows.mask(rule.window), -torch.inf)
    weights_BKGT = torch.softmax(scores, -1).to(query_BHD.dtype)
    to_prefix, to_own = weights_BKGT.split([prefixes.keys.shape[2], own.keys.shape[2]], -1)
    out_BKGD = _products(to_own, own.values)
    _add_prefix_values(out_BKGD, to_prefix, prefixes.values, rows)
    return out_BKGD.view(B, H, D)


def _products(left: Tensor, right: Tensor) -> Tensor:
    """Of matrices along the first two dimensions."""
    return torch.bmm(left.flatten(0, 1), right.flatten(0, 1)).view(*left.shape[:3], right.shape[3])


def _seated(value_BKGX: Tensor, at: Seats) -> Tensor:
    """[S, K, N · G, X], 0 where a seat is empty."""
    _, K, G, X = value_BKGX.shape
    seated = value_BKGX.new_zeros(at.num_prefixes, K, at.num_seats, G, X)
    seated[at.prefix, :, at.seat] = value_BKGX[at.rows]
    return seated.flatten(2, 3)


def _prefix_scores(query_BKGD: Tensor, keys_SKPD: Tensor, rows: Rows) -> Tensor:
    B, K, G, _ = query_BKGD.shape
    scores_BKGP = query_BKGD.new_empty(B, K, G, keys_SKPD.shape[2])
    for at in rows.seats:
        scores = _products(_seated(query_BKGD, at), keys_SKPD[at.prefixes].transpose(2, 3))
        scores_BKGP[at.rows] = scores.unflatten(2, (at.num_seats, G))[at.prefix, :, at.seat]
    return scores_BKGP


def _add_prefix_values(out_BKGD: Tensor, weights_BKGP: Tensor, values_SKPD: Tensor, rows: Rows) -> None:
    G = out_BKGD.shape[2]
    for at in rows.seats:
        out = _products(_seated(weights_BKGP, at), values_SKPD[at.prefixes])
        out_BKGD[at.rows] += out.unflatten(2, (at.num_seats, G))[at.prefix, :, at.seat]
