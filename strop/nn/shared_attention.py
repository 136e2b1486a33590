"""Attention of decoding: one query a row, over a prefix that rows share and over the row's own tokens.

The keys of a prefix are read once for all of its rows, in one product of a size that is worth a product
(Hydragen, Juravsky et al. 2024, §3.2). Own tokens lie in blocks, of which a row has as many as it needs; the
scores of all parts are under one softmax.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.nn.attention import Rule
from strop.nn.product import factor, wide_type

# B rows, H query heads, K key heads, G query heads of a key head, D head size
# S prefixes of P tokens, N seats at each, M blocks of T own tokens

_MOST_EMPTY = 2
"""Prefixes with very different numbers of rows are taken apart when more than every other seat is empty."""


@dataclass(frozen=True, slots=True)
class Keys:
    """[S, K, P, D] each, of prefixes; or [M, K, T, D], of blocks."""

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
class Tail:
    """What some rows, which follow those of the tail before, have added to their prefixes."""

    lengths: NDArray[np.int64]
    """[rows] tokens, the new one included"""
    row_of: NDArray[np.int64]
    """[M] whose block it is, counted from the first of these rows"""
    first: NDArray[np.int64]
    """[M] which of its row's tokens a block begins with"""


@dataclass(frozen=True, slots=True)
class Rows:
    """What B rows look at, the same for all layers of a step. A bias is 0 where a row may look, −∞ elsewhere,
    by the window of a layer."""

    seats: list[Seats]
    prefix_bias: Callable[[int | None], Tensor]
    """[B, 1, 1, P]"""
    row_of: list[Tensor]
    """[M] of each tail, among all rows"""
    own_bias: Callable[[int | None, int], list[Tensor]]
    """[M, 1, 1, T] of each tail; T comes second"""
    ways: Callable[[int], list[Ways]]
    """By the number of key heads: of each of `seats`."""
    prefix_tokens: int
    """P: of the longest prefix"""


def rows_at(
    prefix_of_row: NDArray[np.int64], prefix_lengths: NDArray[np.int64], tails: Sequence[Tail]
) -> Rows:
    """Rows of one tail after those of another; a row has at least one token of its own."""
    own_B = torch.from_numpy(np.concatenate([tail.lengths for tail in tails]))
    lengths_B, P = torch.from_numpy(prefix_lengths[prefix_of_row]), int(prefix_lengths.max())
    starts = np.cumsum([0, *(len(tail.lengths) for tail in tails)])
    row_of = [torch.from_numpy(tail.row_of + start) for tail, start in zip(tails, starts[:-1], strict=True)]
    seats = _seats(prefix_of_row, len(prefix_lengths))

    @cache
    def prefix_bias(window: int | None) -> Tensor:
        keys_P = torch.arange(P)
        seen = keys_P < lengths_B[:, None]
        if window is not None:
            seen &= keys_P >= (lengths_B + own_B - window)[:, None]
        return _bias(seen)

    @cache
    def own_bias(window: int | None, block_tokens: int) -> list[Tensor]:
        found = []
        for tail, rows_M in zip(tails, row_of, strict=True):
            keys_MT = torch.from_numpy(tail.first)[:, None] + torch.arange(block_tokens)
            seen = keys_MT < own_B[rows_M, None]
            if window is not None:
                seen &= keys_MT >= (own_B - window)[rows_M, None]
            found.append(_bias(seen))
        return found

    @cache
    def ways(key_heads: int) -> list[Ways]:
        return [at.ways(key_heads) for at in seats]

    return Rows(seats, prefix_bias, row_of, own_bias, ways, P)


def _bias(seen: Tensor) -> Tensor:
    return torch.zeros(seen.shape).masked_fill_(~seen, -torch.inf)[:, None, None, :]


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


def shared_attention(
    query_BHD: Tensor, prefixes: Keys, tails: Sequence[Keys], rows: Rows, rule: Rule
) -> Tensor:
    """[B, H, D]. A key that no row may look at must still be a number."""
    B, H, D = query_BHD.shape
    K = prefixes.keys.shape[1]
    query_BKGD = (factor(query_BHD) * rule.scale).reshape(B, K, H // K, D)
    over_BKGP = _scores(_to_prefixes(query_BKGD, prefixes.keys, rows), rows.prefix_bias(rule.window), rule)
    biases = rows.own_bias(rule.window, tails[0].keys.shape[2])
    overs = [
        _scores(_products(query_BKGD[row_of], tail.keys.transpose(2, 3)), bias, rule)
        for tail, row_of, bias in zip(tails, rows.row_of, biases, strict=True)
    ]
    total_BKG1 = _exponentials_(over_BKGP, overs, rows.row_of)
    out_BKGD = torch.empty_like(query_BKGD, dtype=over_BKGP.dtype)
    for at, ways in zip(rows.seats, rows.ways(K), strict=True):
        seated = _seated(over_BKGP.to(query_BKGD.dtype), at, ways)
        seen = _unseated(_products(seated, prefixes.values[at.prefixes]), H // K, ways)
        out_BKGD[at.rows] = seen.to(out_BKGD.dtype)
    for over_MKGT, tail, row_of in zip(overs, tails, rows.row_of, strict=True):
        seen = _products(over_MKGT.to(query_BKGD.dtype), tail.values)
        out_BKGD.index_add_(0, row_of, seen.to(out_BKGD.dtype))
    return out_BKGD.div_(total_BKG1).view(B, H, D).to(query_BHD.dtype)


def _scores(part: Tensor, bias: Tensor, rule: Rule) -> Tensor:
    """In float32 or wider."""
    part = part.to(wide_type(part.dtype))
    if rule.softcap is not None:
        part = part.div_(rule.softcap).tanh_().mul_(rule.softcap)
    return part.add_(bias)


def _exponentials_(over_BKGP: Tensor, overs: Sequence[Tensor], row_of: Sequence[Tensor]) -> Tensor:
    """Scores become exp(score − the row's largest); returns their sums [B, K, G, 1]."""
    top_BKG1 = over_BKGP.amax(-1, keepdim=True)
    for over_MKGT, rows_M in zip(overs, row_of, strict=True):
        top_MKG1 = over_MKGT.amax(-1, keepdim=True)
        top_BKG1.scatter_reduce_(0, rows_M[:, None, None, None].expand_as(top_MKG1), top_MKG1, "amax")
    total_BKG1 = over_BKGP.sub_(top_BKG1).exp_().sum(-1, keepdim=True)
    for over_MKGT, rows_M in zip(overs, row_of, strict=True):
        total_BKG1.index_add_(0, rows_M, over_MKGT.sub_(top_BKG1[rows_M]).exp_().sum(-1, keepdim=True))
    return total_BKG1


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
