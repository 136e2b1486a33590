"""Shared-prefix packing: samples end to end in micro-batches, each group's prompt once for all its samples.

What all prompts of a micro-batch begin with, as with one system prompt before all, is there once for them.
A sample's tokens attend to the prompt and to the sample's own earlier tokens, at the positions that they
would have alone, so log-probs and gradients are exactly those of the unshared form. Nothing is padded.
Pure: numpy in, numpy out.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from strop.algo.batch import Batch
from strop.kept import Kept

BLOCK_TOKENS = 128
"""A bundle of at most this many tokens attends in one masked product, a longer one in several: most of what a
product of many samples computes is masked."""
STEM_TOKENS = 16
"""A shorter beginning of different prompts is not worth another product in every layer."""
REST_TOKENS = 512
"""A prompt that goes on for longer after a common beginning has one of its own: the mask of its rest would
take more than what it shares."""


@dataclass(frozen=True, slots=True)
class Block:
    """`num_rows` rows of a micro-batch that attend in one product; blocks follow each other without gaps.

    They see the rows of the blocks `prefixes`, in this order, and their own, as far as `mask` [rows, keys]
    says; None: causal.
    """

    num_rows: int
    prefixes: tuple[int, ...]
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
    rows: NDArray[np.int64]
    """[S] its samples, by their rows in the batch."""
    ends: NDArray[np.int64]
    """[S] the row of each sample's last token of those that are fed."""
    kept: Kept | None = None
    """[N] the ids that each target was drawn from; None: all of them from the whole vocabulary."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """What one sample adds after its prompt: tokens that are fed, and tokens that are scored."""

    row: int
    """Of the sample in the batch."""
    fed: NDArray[np.int32]
    """Response tokens up to the last that predicts a sampled one, or all."""
    scored: NDArray[np.int64]
    """Indices into the response."""
    targets: NDArray[np.int32]
    first_column: int


@dataclass(frozen=True, slots=True)
class _Bundle:
    """A prompt, and samples of it."""

    prompt: NDArray[np.int32]
    pieces: list[_Piece]


@dataclass(slots=True)
class _Filling:
    """A micro-batch that samples are added to."""

    bundles: list[_Bundle] = field(default_factory=list)
    whole: int = 0
    """Tokens, if every prompt stood whole."""
    common: int = 0
    """Tokens that all prompts begin with; a prompt's last one counts as its own."""
    longest: int = 0
    """Tokens of a prompt."""

    @property
    def stem(self) -> int:
        """Tokens that are there once for all prompts."""
        pays = len(self.bundles) > 1 and self.common >= STEM_TOKENS
        return self.common if pays and self.longest - self.common <= REST_TOKENS else 0

    @property
    def tokens(self) -> int:
        """Rows of the micro-batch."""
        return self.whole - self.stem * (len(self.bundles) - 1)

    def plus(self, prompt: NDArray[np.int32], piece: _Piece) -> "_Filling":
        """With one more sample; this one stays as it is."""
        if self.bundles and np.array_equal(self.bundles[-1].prompt, prompt):
            joined = _Bundle(prompt, [*self.bundles[-1].pieces, piece])
            return replace(self, bundles=[*self.bundles[:-1], joined], whole=self.whole + len(piece.fed))
        common = len(prompt) - 1
        if self.bundles:
            most = min(self.common, common)
            differs = np.flatnonzero(self.bundles[0].prompt[:most] != prompt[:most])
            common = int(differs[0]) if len(differs) else most
        return _Filling(
            bundles=[*self.bundles, _Bundle(prompt, [piece])],
            whole=self.whole + len(prompt) + len(piece.fed),
            common=common,
            longest=max(self.longest, len(prompt)),
        )


def pack(
    batch: Batch, rows: Iterable[int], *, max_tokens: int, whole: bool = False, whole_groups: bool = False
) -> list[Packed]:
    """Micro-batches of at most `max_tokens` tokens over samples `rows`. A longer sample stands alone, with
    `whole_groups` a longer group.

    Samples keep their order; samples without a token to score are left out. With `whole` none is, and every
    token is fed, so that `ends` are the states in which the samples end.
    """
    full: list[_Filling] = []
    filling = _Filling()
    for unit in _units(batch, rows, whole=whole, whole_groups=whole_groups):
        more = _filled(filling, unit)
        if filling.bundles and more.tokens > max_tokens:
            full.append(filling)
            more = _filled(_Filling(), unit)
        filling = more
    if filling.bundles:
        full.append(filling)
    return [_lay_out(filled, batch.kept) for filled in full]


_Unit = list[tuple[NDArray[np.int32], _Piece]]
"""Prompts and pieces of samples that lie in one micro-batch."""


def _units(batch: Batch, rows: Iterable[int], *, whole: bool, whole_groups: bool) -> Iterator[_Unit]:
    def key(row: int) -> int:
        return batch.samples[row].group_id if whole_groups else row

    for _, together in groupby(rows, key):
        pieces = [_piece(batch, row, whole=whole) for row in together]
        unit = [(prompt, piece) for prompt, piece in pieces if whole or len(piece.scored)]
        if unit:
            yield unit


def _filled(filling: _Filling, unit: _Unit) -> _Filling:
    for prompt, piece in unit:
        filling = filling.plus(prompt, piece)
    return filling


def _piece(batch: Batch, row: int, *, whole: bool = False) -> tuple[NDArray[np.int32], _Piece]:
    sample = batch.samples[row]
    ids = sample.sequence.ids
    response = ids[sample.prompt_length :]
    scored = np.flatnonzero(sample.sequence.scored[sample.prompt_length :])
    needed = scored[-1] if len(scored) else 0
    fed = response if whole else response[:needed]
    first = batch.tokens_of(row).start
    piece = _Piece(row=row, fed=fed, scored=scored, targets=response[scored], first_column=first)
    return ids[: sample.prompt_length], piece


def _lay_out(filled: _Filling, kept: Kept | None) -> Packed:
    stem = filled.stem
    ids = [filled.bundles[0].prompt[:stem]]
    positions = [np.arange(stem)]
    predecessors, ends = [], []
    blocks = [Block(stem, (), None)] if stem else []
    start = stem
    for bundle in filled.bundles:
        prompt, lengths = len(bundle.prompt) - stem, [len(p.fed) for p in bundle.pieces]
        ids += [bundle.prompt[stem:], *(p.fed for p in bundle.pieces)]
        whole = len(bundle.prompt)
        positions += [np.arange(stem, whole), *(whole + np.arange(n) for n in lengths)]
        blocks += _blocks(len(blocks), stem, prompt, lengths)
        at = start + prompt
        for piece, length in zip(bundle.pieces, lengths, strict=True):
            # token 0 of a response is predicted by the prompt's last row, token i by the row of token i − 1
            predecessors.append(np.where(piece.scored == 0, start + prompt - 1, at + piece.scored - 1))
            at += length
            ends.append(at - 1 if length else start + prompt - 1)
        start = at
    pieces = [p for bundle in filled.bundles for p in bundle.pieces]
    columns = np.concatenate([p.first_column + p.scored for p in pieces])
    return Packed(
        ids=np.concatenate(ids).astype(np.int64),
        positions=np.concatenate(positions).astype(np.int64),
        blocks=tuple(blocks),
        predecessors=np.concatenate(predecessors),
        targets=np.concatenate([p.targets for p in pieces]).astype(np.int64),
        columns=columns,
        rows=np.array([p.row for p in pieces], np.int64),
        ends=np.array(ends, np.int64),
        kept=None if kept is None else kept.take(columns),
    )


def _blocks(first: int, stem: int, prompt: int, lengths: list[int]) -> list[Block]:
    """One block for a short bundle; else the prompt, then the samples, several to a block while short.

    `first`: blocks of the micro-batch before these. `stem`: rows of block 0 that they all see, if any;
    `prompt` is what follows them.
    """
    stems = (0,) if stem else ()
    if prompt + sum(lengths) <= BLOCK_TOKENS:
        return [Block(prompt + sum(lengths), stems, _after(stem, _tree_mask(prompt, lengths)))]
    blocks = [Block(prompt, stems, _after(stem, np.tri(prompt, dtype=bool)) if stem else None)]
    for run in _runs(lengths):
        own = _tree_mask(0, run)
        if len(own):
            blocks.append(Block(len(own), (*stems, first), _after(stem + prompt, own)))
    return blocks


def _after(seen: int, own: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Before the rows' own keys, `seen` keys that all of them see."""
    return np.concatenate([np.ones((len(own), seen), bool), own], axis=1)


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
