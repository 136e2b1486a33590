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
from strop.nn.product import factor, wide_type

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
    place: NDArray[np.int64]
    """[rows] prefix · num_seats + seat"""

    def ways(self, key_heads: int) -> "Ways":
        """Of the rows' key heads."""
        places: NDArray[np.int64] = np.arange(self.num_prefixes * key_heads * self.num_seats)
        places = places.reshape(-1, key_heads, self.num_seats).transpose(0, 2, 1).reshape(-1, key_heads)
        out = places[self.place].ravel()
        into = np.zeros(places.size, np.int64)  # an empty seat copies the first row: nobody reads the result
        into[out] = np.arange(len(out))
        return Ways(torch.from_numpy(into), torch.from_numpy(out))


@dataclass(frozen=True, slots=True)
class Ways:
    """Between [rows, K] and [S, K, N]."""

    into: Tensor
    """[S · K · N] which row's key head takes the seat"""
    out: Tensor
    """[rows · K] the seat of each"""


@dataclass(frozen=True, slots=True)
class Rows:
    """What B rows look at, the same for all layers of a step."""

    seats: list[Seats]
    bias: Callable[[int | None], Tensor]
    """By the window of a layer: [B, 1, 1, P + L], 0 where a row may look, −∞ elsewhere."""
    ways: Callable[[int], list[Ways]]
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
    def ways(key_heads: int) -> list[Ways]:
        return [at.ways(key_heads) for at in seats]

    return Rows(seats, bias, ways, len(prefix_lengths), P, L)


def _seats(prefix_of_row: NDArray[np.int64], num_prefixes: int) -> list[Seats]:
    counts = np.bincount(prefix_of_row, minlength=num_prefixes)
    order = np.argsort(prefix_of_row, kind="stable")
    seat = np.empty_like(prefix_of_row)
    seat[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    everything = slice(None)
    if num_prefixes * counts.max() <= _MOST_EMPTY * len(prefix_of_row):
        num_seats = int(counts.max())
        place = prefix_of_row * num_seats + seat
        return [Seats(everything, everything, num_prefixes, num_seats, place)]
    sizes = np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64)
    found = []
    for size in np.unique(sizes[counts > 0]):
        prefixes = np.flatnonzero((sizes == size) & (counts > 0))
        rows = np.flatnonzero(np.isin(prefix_of_row, prefixes))
        num_seats = int(counts[prefixes].max())
        places = np.searchsorted(prefixes, prefix_of_row[rows]) * num_seats + seat[rows]
        at = torch.from_numpy(rows), torch.from_numpy(prefixes)
        found.append(Seats(*at, len(prefixes), num_seats, places))
    return found


def shared_attention(query_BHD: Tensor, prefixes: Keys, own: Keys, rows: Rows, rule: Rule) -> Tensor:
    """[B, H, D]. A key that no row may look at must still be a number."""
    B, H, D = query_BHD.shape
    K, P = own.keys.shape[1], prefixes.keys.shape[2]
    query_BKGD = (factor(query_BHD) * rule.scale).reshape(B, K, H // K, D)
    scores_BKGT = _scores(query_BKGD, prefixes.keys, own.keys, rows, rule)
    weights_BKGT = torch.softmax(scores_BKGT, -1).to(query_BKGD.dtype)
    out_BKGD = _products(weights_BKGT[..., P:], own.values)
    for at, ways in zip(rows.seats, rows.ways(K), strict=True):
        seated = _products(_seated(weights_BKGT, at, ways)[..., :P], prefixes.values[at.prefixes])
        out_BKGD[at.rows] += _unseated(seated, H // K, ways)
    return out_BKGD.view(B, H, D).to(query_BHD.dtype)


def _scores(query_BKGD: Tensor, prefixes: Tensor, own: Tensor, rows: Rows, rule: Rule) -> Tensor:
    """[B, K, G, P + L] in float32 or wider; keys [S, K, P, D] and [B, K, L, D]."""
    B, K, G, _ = query_BKGD.shape
    P, bias = prefixes.shape[2], rows.bias(rule.window)
    wide = wide_type(query_BKGD.dtype)
    scores_BKGT = torch.empty(B, K, G, P + own.shape[2], dtype=wide)
    parts = _to_prefixes(query_BKGD, prefixes, rows), _products(query_BKGD, own.transpose(2, 3))
    for part, at in zip(parts, (slice(P), slice(P, None)), strict=True):
        if rule.softcap is not None:
            part = part.to(wide).div_(rule.softcap).tanh_().mul_(rule.softcap)
        torch.add(part, bias[..., at], out=scores_BKGT[..., at])
    return scores_BKGT


def _to_prefixes(query_BKGD: Tensor, keys_SKPD: Tensor, rows: Rows) -> Tensor:
    """[B, K, G, P]"""
    B, K, G, _ = query_BKGD.shape
    seated = [
        _unseated(_products(_seated(query_BKGD, at, ways), keys_SKPD[at.prefixes].transpose(2, 3)), G, ways)
        for at, ways in zip(rows.seats, rows.ways(K), strict=True)
    ]
    if len(seated) == 1:
        return seated[0]
    scores_BKGP = query_BKGD.new_empty(B, K, G, keys_SKPD.shape[2])
    for at, some in zip(rows.seats, seated, strict=True):
        scores_BKGP[at.rows] = some
    return scores_BKGP


def _products(left: Tensor, right: Tensor) -> Tensor:
    """Of matrices along the first two dimensions."""
    return torch.bmm(left.flatten(0, 1), factor(right.flatten(0, 1))).view(*left.shape[:3], right.shape[3])


def _seated(value_BKGX: Tensor, at: Seats, ways: Ways) -> Tensor:
    """[S, K, N · G, X]; an empty seat has some row's."""
    _, K, G, X = value_BKGX.shape
    seated = value_BKGX[at.rows].reshape(-1, G * X).index_select(0, ways.into)
    return seated.view(at.num_prefixes, K, at.num_seats * G, X)


def _unseated(seated_SKRX: Tensor, G: int, ways: Ways) -> Tensor:
    """[rows, K, G, X] of [S, K, N · G, X]"""
    K, X = seated_SKRX.shape[1], seated_SKRX.shape[3]
    return seated_SKRX.reshape(-1, G * X).index_select(0, ways.out).view(-1, K, G, X)
