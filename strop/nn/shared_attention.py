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
    place: Tensor
    """[rows] prefix · num_seats + seat"""

    def places(self, key_heads: int) -> Tensor:
        """[rows · K] of each row and key head among [S, K, N]"""
        prefix = self.place.div(self.num_seats, rounding_mode="floor")
        first = prefix * (key_heads - 1) * self.num_seats + self.place
        return (first[:, None] + torch.arange(key_heads) * self.num_seats).flatten()


@dataclass(frozen=True, slots=True)
class Rows:
    """What B rows look at, the same for all layers of a step."""

    seats: list[Seats]
    bias: Callable[[int | None], Tensor]
    """By the window of a layer: [B, 1, 1, P + L], 0 where a row may look, −∞ elsewhere."""
    places: Callable[[int], list[Tensor]]
    """By the number of key heads: of each of `seats`."""
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

    seats = _seats(prefix_of_row, len(prefix_lengths))

    @cache
    def bias(window: int | None) -> Tensor:
        seen = torch.cat([keys_P < lengths_B, keys_L <= own_B], 1)
        if window is not None:
            first_B = lengths_B + own_B - window
            seen &= torch.cat([(keys_P > first_B), (lengths_B + keys_L > first_B)], 1)
        return torch.zeros(seen.shape).masked_fill_(~seen, -torch.inf)[:, None, None, :]

    @cache
    def places(key_heads: int) -> list[Tensor]:
        return [at.places(key_heads) for at in seats]

    return Rows(seats, bias, places, len(prefix_lengths), P, L)


def _seats(prefix_of_row: NDArray[np.int64], num_prefixes: int) -> list[Seats]:
    counts = np.bincount(prefix_of_row, minlength=num_prefixes)
    order = np.argsort(prefix_of_row, kind="stable")
    seat = np.empty_like(prefix_of_row)
    seat[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    everything = slice(None)
    if num_prefixes * counts.max() <= _MOST_EMPTY * len(prefix_of_row):
        num_seats = int(counts.max())
        place = torch.from_numpy(prefix_of_row * num_seats + seat)
        return [Seats(everything, everything, num_prefixes, num_seats, place)]
    sizes = np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64)
    found = []
    for size in np.unique(sizes[counts > 0]):
        prefixes = np.flatnonzero((sizes == size) & (counts > 0))
        rows = np.flatnonzero(np.isin(prefix_of_row, prefixes))
        num_seats = int(counts[prefixes].max())
        places = np.searchsorted(prefixes, prefix_of_row[rows]) * num_seats + seat[rows]
        at = [torch.from_numpy(indices) for indices in (rows, prefixes, places)]
        found.append(Seats(at[0], at[1], len(prefixes), num_seats, at[2]))
    return found


def shared_attention(query_BHD: Tensor, prefixes: Keys, own: Keys, rows: Rows, rule: Rule) -> Tensor:
    """[B, H, D]. A key that no row may look at must still be a number."""
    B, H, D = query_BHD.shape
    K = own.keys.shape[1]
    query_BKGD = (query_BHD * rule.scale).reshape(B, K, H // K, D)
    scores_BKGT = _scores(query_BKGD, prefixes.keys, own.keys, rows)
    if rule.softcap is not None:
        scores_BKGT.div_(rule.softcap).tanh_().mul_(rule.softcap)
    scores_BKGT += rows.bias(rule.window)
    weights_BKGT = torch.softmax(scores_BKGT, -1).to(query_BHD.dtype)
    to_prefix, to_own = weights_BKGT.split([prefixes.keys.shape[2], own.keys.shape[2]], -1)
    out_BKGD = _products(to_own, own.values)
    for at, places in zip(rows.seats, rows.places(K), strict=True):
        seated = _products(_seated(to_prefix, at, places), prefixes.values[at.prefixes])
        out_BKGD[at.rows] += _unseated(seated, H // K, places)
    return out_BKGD.view(B, H, D)


def _scores(query_BKGD: Tensor, keys_SKPD: Tensor, own_BKLD: Tensor, rows: Rows) -> Tensor:
    """[B, K, G, P + L] in float32 or wider"""
    B, K, G, _ = query_BKGD.shape
    P, L = keys_SKPD.shape[2], own_BKLD.shape[2]
    wide = torch.promote_types(query_BKGD.dtype, torch.float32)
    scores_BKGT = torch.empty(B, K, G, P + L, dtype=wide)
    for at, places in zip(rows.seats, rows.places(K), strict=True):
        seated = _products(_seated(query_BKGD, at, places), keys_SKPD[at.prefixes].transpose(2, 3))
        scores_BKGT[..., :P][at.rows] = _unseated(seated, G, places).to(wide)
    scores_BKGT[..., P:] = _products(query_BKGD, own_BKLD.transpose(2, 3))
    return scores_BKGT


def _products(left: Tensor, right: Tensor) -> Tensor:
    """Of matrices along the first two dimensions."""
    return torch.bmm(left.flatten(0, 1), right.flatten(0, 1)).view(*left.shape[:3], right.shape[3])


def _seated(value_BKGX: Tensor, at: Seats, places: Tensor) -> Tensor:
    """[S, K, N · G, X], 0 where a seat is empty."""
    _, K, G, X = value_BKGX.shape
    seated = value_BKGX.new_zeros(at.num_prefixes * K * at.num_seats, G * X)
    seated[places] = value_BKGX[at.rows].reshape(-1, G * X)
    return seated.view(at.num_prefixes, K, at.num_seats * G, X)


def _unseated(seated_SKRX: Tensor, G: int, places: Tensor) -> Tensor:
    """[rows, K, G, X] of [S, K, N · G, X]"""
    K, X = seated_SKRX.shape[1], seated_SKRX.shape[3]
    return seated_SKRX.view(-1, G * X)[places].view(-1, K, G, X)
