"""Draws from a part of the vocabulary: which ids top-k, top-p and min-p keep, and one of them a row.

The order is temperature, top-k, top-p of what top-k left, min-p relative to the likeliest token: SGLang's and
transformers'. (vLLM cuts at min-p first, so its top-p sets are smaller where both are used.) Every set is of
the likeliest tokens; of equally likely ones at its border those with the lowest ids are in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.sample import Sampling

# B rows, V vocabulary, M likeliest tokens, K kept ids

FIRST = 256
"""So many likeliest tokens are looked at first; only rows whose sets are larger are sorted as a whole."""


class Choice(NamedTuple):
    id: int
    logp: float
    """Under the distribution over the kept ids."""
    kept: NDArray[np.int32]
    """Ascending."""


@dataclass(frozen=True, slots=True)
class Rows:
    """B rows that are drawn from a part of the vocabulary."""

    logits_BV: Tensor
    """Divided by temperature."""
    total_B: NDArray[np.float64]
    """Σ exp(logit − largest logit) over the vocabulary."""
    samplings: Sequence[Sampling]
    noise_B: NDArray[np.float64]


def choose(rows: Rows) -> list[Choice]:
    """One token a row, by inverse CDF over the kept ids in ascending order."""
    sizes, borders = _sizes(rows)
    mask_BV = rows.logits_BV >= torch.from_numpy(borders)[:, None]
    at = mask_BV.nonzero(as_tuple=True)
    ids_K, logits_K = at[1].numpy().astype(np.int32), rows.logits_BV[at].numpy()
    ends = np.cumsum(np.bincount(at[0].numpy(), minlength=len(sizes)))[:-1]
    tops = rows.logits_BV.amax(-1).numpy()
    choices = []
    for row, (ids, logits) in enumerate(zip(np.split(ids_K, ends), np.split(logits_K, ends), strict=True)):
        if len(ids) > sizes[row]:
            keep = _lowest_ids(logits, int(sizes[row]), borders[row])
            ids, logits = ids[keep], logits[keep]
        choices.append(_drawn(ids, logits - tops[row], rows.noise_B[row]))
    return choices


def _sizes(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """How many ids each row keeps, and the logit of the least likely of them."""
    vocabulary = rows.logits_BV.shape[1]
    width = min(vocabulary, max(s.top_k if s.top_k > 0 else FIRST for s in rows.samplings))
    values_BM = rows.logits_BV.topk(width).values.numpy()
    sizes, borders = np.zeros(len(values_BM), np.int64), np.zeros(len(values_BM), np.float32)
    for row, sampling in enumerate(rows.samplings):
        values_M, total = values_BM[row], rows.total_B[row]
        size = _size(values_M, sampling, total=total, is_all=width == vocabulary)
        if size is None:
            values_M = np.sort(rows.logits_BV[row].numpy())[::-1]
            size = _size(values_M, sampling, total=total, is_all=True)
        assert size is not None, "the whole vocabulary decides"
        sizes[row], borders[row] = size, values_M[size - 1]
    return sizes, borders


def _size(values_M: NDArray[np.float32], sampling: Sampling, *, total: float, is_all: bool) -> int | None:
    """How many of the likeliest tokens are kept; None when the set may reach beyond those given."""
    weights = np.exp((values_M - values_M[0]).astype(np.float64))
    if sampling.top_k > 0:
        weights = weights[: sampling.top_k]
        total = weights.sum()
    size = len(weights)
    if sampling.top_p < 1:
        size = min(size, int(np.searchsorted(weights.cumsum(), sampling.top_p * total)) + 1)
    if sampling.min_p > 0:
        size = min(size, int(np.count_nonzero(weights >= sampling.min_p)))
    return size if is_all or sampling.top_k > 0 or size < len(weights) else None


def _lowest_ids(logits: NDArray[np.float32], size: int, border: np.float32) -> NDArray[np.bool_]:
    """`size` of the ids: without the highest of those at the border. They are in ascending order."""
    keep = np.ones(len(logits), bool)
    keep[np.flatnonzero(logits == border)[size - len(logits) :]] = False
    return keep


def _drawn(ids: NDArray[np.int32], below_top: NDArray[np.float32], noise: float) -> Choice:
    """`below_top`: logits less the largest of the row."""
    cdf = np.exp(below_top.astype(np.float64)).cumsum()
    # side="right": an id without weight is never chosen. Noise is below 1, so the aim is below the total.
    at = int(np.searchsorted(cdf, noise * cdf[-1], side="right"))
    return Choice(int(ids[at]), min(0.0, float(below_top[at] - np.log(cdf[-1]))), ids)
