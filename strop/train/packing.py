"""Shared-prefix packing: samples end to end in micro-batches, each group's prompt once for all its samples.

A sample's tokens attend to the prompt and to the sample's own earlier tokens, at the positions that they
would have alone, so log-probs and gradients are exactly those of the unshared form. Nothing is padded.
Pure: numpy in, numpy out.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strop.algo.batch import Batch
from strop.kept import Kept

BLOCK_TOKENS = 512
"""A bundle of at most this many tokens attends in one masked product; longer ones go sample by sample, as
the mask of a product grows with the square of its tokens."""


@dataclass(frozen=True, slots=True)
class Block:
    """`num_rows` rows of a micro-batch that attend in one product; blocks follow each other without gaps.

    They see the rows of block `prefix` (None: no others) and their own, as far as `mask` [rows, keys] says;
    None: causal.
    """

    num_rows: int
    prefix: int | None
    mask: NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True)
class Packed:
    """One micro-batch of T tokens, scoring N sampled tokens."""

    ids: NDArray[np.int64]
    """[T]"""
    positions: NDArray[np.int64]
    """[T] position of each token in its own sequence."""
    blocks: tuple[Block, ...]
    predecessors: NDArray[np.int64]
    """[N] row whose hidden state predicts the token."""
    targets: NDArray[np.int64]
    """[N] the token's id."""
    columns: NDArray[np.int64]
    """[N] where the token stands in the batch's per-token columns."""
    kept: Kept | None = None
    """[N] the ids that each target was drawn from; None: all of them from the whole vocabulary."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """What one sample adds after its prompt: tokens that are fed, and tokens that are scored."""

    fed: NDArray[np.int32]
    """Response tokens up to the last that predicts a sampled one."""
    scored: NDArray[np.int64]
    """Indices into the response."""
    targets: NDArray[np.int32]
    first_column: int


def pack(batch: Batch, rows: Iterable[int], *, max_tokens: int) -> list[Packed]:
    """Micro-batches of at most `max_tokens` tokens (a longer sample stands alone) over samples `rows`.

    Samples keep their order; samples without a sampled token are left out.
    """
    bundles: list[tuple[NDArray[np.int32], list[_Piece]]] = []
    full: list[list[tuple[NDArray[np.int32], list[_Piece]]]] = []
    used = 0
    for row in rows:
        prompt, piece = _piece(batch, row)
        if len(piece.scored) == 0:
            continue
        joins = bool(bundles) and np.array_equal(bundles[-1][0], prompt)
        if bundles and used + len(piece.fed) + (0 if joins else len(prompt)) > max_tokens:
            full.append(bundles)
            bundles, used, joins = [], 0, False
        if not joins:
            bundles.append((prompt, []))
            used += len(prompt)
        bundles[-1][1].append(piece)
        used += len(piece.fed)
    if bundles:
        full.append(bundles)
    return [_lay_out(bundles, batch.kept) for bundles in full]


def _piece(batch: Batch, row: int) -> tuple[NDArray[np.int32], _Piece]:
    sample = batch.samples[row]
    ids = sample.sequence.ids
    response = ids[sample.prompt_length :]
    scored = np.flatnonzero(sample.sequence.sampled[sample.prompt_length :])
    fed = response[: scored[-1]] if len(scored) else response[:0]
    piece = _Piece(fed=fed, scored=scored, targets=response[scored], first_column=batch.tokens_of(row).start)
    return ids[: sample.prompt_length], piece


def _lay_out(bundles: list[tuple[NDArray[np.int32], list[_Piece]]], kept: Kept | None) -> Packed:
    ids, positions, predecessors = [], [], []
    blocks: list[Block] = []
    start = 0
    for prompt, pieces in bundles:
        lengths = [len(p.fed) for p in pieces]
        ids += [prompt, *(p.fed for p in pieces)]
        positions += [np.arange(len(prompt)), *(len(prompt) + np.arange(n) for n in lengths)]
        at = start + len(prompt)
        blocks += _blocks(len(blocks), len(prompt), lengths)
        for piece, length in zip(pieces, lengths, strict=True):
            # token 0 of a response is predicted by the prompt's last row, token i by the row of token i − 1
            predecessors.append(np.where(piece.scored == 0, start + len(prompt) - 1, at + piece.scored - 1))
            at += length
        start = at
    pieces = [p for _, bundle in bundles for p in bundle]
    columns = np.concatenate([p.first_column + p.scored for p in pieces])
    return Packed(
        ids=np.concatenate(ids).astype(np.int64),
        positions=np.concatenate(positions).astype(np.int64),
        blocks=tuple(blocks),
        predecessors=np.concatenate(predecessors),
        targets=np.concatenate([p.targets for p in pieces]).astype(np.int64),
        columns=columns,
        kept=None if kept is None else kept.take(columns),
    )


def _blocks(first: int, prompt: int, lengths: list[int]) -> list[Block]:
    """One block for a short bundle; else the prompt, then the samples, several to a block while short.

    `first`: blocks of the micro-batch before these.
    """
    if prompt + sum(lengths) <= BLOCK_TOKENS:
        return [Block(prompt + sum(lengths), None, _tree_mask(prompt, lengths))]
    blocks = [Block(prompt, None, None)]
    for run in _runs(lengths):
        own = _tree_mask(0, run)
        if len(own):
            mask = np.concatenate([np.ones((len(own), prompt), bool), own], axis=1)
            blocks.append(Block(len(own), first, mask))
    return blocks


def _runs(lengths: list[int]) -> list[list[int]]:
    """Neighbours together while they stay within a block."""
    runs: list[list[int]] = []
    for length in lengths:
        if runs and sum(runs[-1]) + length <= BLOCK_TOKENS:
            runs[-1].append(length)
        else:
            runs.append([length])
    return runs


def _tree_mask(prompt: int, lengths: list[int]) -> NDArray[np.bool_]:
    """Causal, except that a sample does not see its siblings."""
    owner = np.repeat(np.arange(len(lengths) + 1), [prompt, *lengths])
    same = owner[:, None] == owner[None, :]
    return (same | (owner == 0)[None, :]) & np.tri(len(owner), dtype=bool)
