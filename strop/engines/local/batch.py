"""The running batch: which sequence has which row, who may come in, and one step for all of them.

Runs in the compute thread only; nothing here knows of the event loop.
"""

import asyncio
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.engines.base import Completion, Finish, Request
from strop.engines.local.capacity import ROUNDING
from strop.engines.local.decoder import Decoder
from strop.engines.local.sampler import draw
from strop.engines.local.stopping import StopTexts
from strop.kept import Kept


@dataclass(slots=True)
class Sequence:
    """One request and what has been drawn for it."""

    request: Request
    stop_ids: frozenset[int]
    future: asyncio.Future[Completion]
    """Of whoever waits; set by the event loop only."""
    stop_texts: StopTexts | None = None
    ids: list[int] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    kept: list[NDArray[np.int32]] = field(default_factory=list)
    """What each id was drawn from; nothing when that is the whole vocabulary."""
    finish: Finish | None = None

    @property
    def length(self) -> int:
        return len(self.request.ids) + len(self.ids)

    @property
    def most_tokens(self) -> int:
        """Cache entries that it may need; the last token drawn is never fed."""
        return len(self.request.ids) + self.request.sampling.max_tokens

    def prefix(self) -> NDArray[np.int32]:
        """The exact ids so far."""
        return np.concatenate([self.request.ids, np.array(self.ids, np.int32)])

    def accept(self, token: int, logp: float, version: int) -> None:
        self.ids.append(token)
        self.logp.append(logp)
        self.versions.append(version)
        if self.finish is not None:  # aborted while this token was drawn
            return
        if token in self.stop_ids or (self.stop_texts is not None and self.stop_texts.end(self.ids)):
            self.finish = "stop"
        elif len(self.ids) >= self.request.sampling.max_tokens:
            self.finish = "length"

    def completion(self) -> Completion:
        assert self.finish is not None
        return Completion(
            ids=np.array(self.ids, np.int32),
            logp=np.array(self.logp, np.float32),
            versions=np.array(self.versions, np.int32),
            finish=self.finish,
            extras={} if self.request.sampling.keeps_all else Kept.of_spans(self.kept).as_extras(),
        )


class RunningBatch:
    """Sequences in rows 0 … n − 1 of the cache, in order of admission."""

    def __init__(self, decoder: Decoder, *, max_tokens: int) -> None:
        self._decoder = decoder
        self._max_tokens = max_tokens
        self.sequences: list[Sequence] = []
        self.version = 0

    def admit(self, waiting: list[Sequence]) -> list[Sequence]:
        """Take from the front of `waiting` what fits into the cache; returns those taken."""
        taken: list[Sequence] = []
        capacity = self._decoder.cache.capacity if self.sequences else 0
        for sequence in waiting:
            wider = max(capacity, _rounded(sequence.most_tokens))
            rows = len(self.sequences) + len(taken) + 1
            # An empty batch always takes one: a request that can never fit was refused before.
            if rows > 1 and rows * wider > self._max_tokens:
                break
            capacity = wider
            taken.append(sequence)
        return taken

    @torch.inference_mode()
    def step(self, admitted: list[Sequence]) -> list[Sequence]:
        """Prefill the admitted sequences and draw their first tokens, then one token for every earlier one.

        Returns the sequences that finished; the others stay.
        """
        earlier = len(self.sequences)
        if earlier:
            last = np.array([s.ids[-1] for s in self.sequences], np.int64)
            at = np.array([s.length - 1 for s in self.sequences], np.int64)
            self._draw(self.sequences, self._decoder.decode(last, at))
        if admitted:
            self._make_room(admitted)
            self.sequences.extend(admitted)
            self._draw(admitted, self._prefill(admitted, first_row=earlier))
        return self.drop_finished()

    def _make_room(self, admitted: list[Sequence]) -> None:
        """Grow the cache to what is needed now; an empty one that is much too large is made anew."""
        cache, in_use = self._decoder.cache, len(self.sequences)
        longest = max(s.most_tokens for s in admitted)
        capacity = max(cache.capacity if in_use else 0, _rounded(longest))
        rows = in_use + len(admitted)
        fits = capacity == cache.capacity and rows <= cache.rows
        wastes = in_use == 0 and cache.rows > 2 * rows
        if not fits or wastes:
            cache.shape(rows, capacity, in_use=in_use)

    def _prefill(self, admitted: list[Sequence], first_row: int) -> Tensor:
        """Logits [len(admitted), V]; equal prefixes (the samples of one prompt) are computed once."""
        prefixes = [s.prefix() for s in admitted]
        first_with: dict[bytes, int] = {}
        owners = [first_with.setdefault(p.tobytes(), i) for i, p in enumerate(prefixes)]
        unique = list(first_with.values())
        logits_UV = self._decoder.prefill([prefixes[i] for i in unique], [first_row + i for i in unique])
        for i, owner in enumerate(owners):
            if owner != i:
                self._decoder.cache.copy_row(first_row + owner, first_row + i, len(prefixes[i]))
        return logits_UV[torch.tensor([unique.index(owner) for owner in owners])]

    def _draw(self, sequences: list[Sequence], logits_BV: Tensor) -> None:
        drawn = draw(
            logits_BV,
            samplings=[s.request.sampling for s in sequences],
            seeds=np.array([s.request.seed for s in sequences], np.uint64),
            positions=np.array([s.length for s in sequences], np.int64),
        )
        for row, kept in drawn.kept.items():
            sequences[row].kept.append(kept)
        for sequence, token, logp in zip(sequences, drawn.ids, drawn.logp, strict=True):
            sequence.accept(int(token), float(logp), self.version)

    @torch.inference_mode()
    def drop_finished(self) -> list[Sequence]:
        """Take finished sequences out and close the rows up; returns them."""
        finished = [s for s in self.sequences if s.finish is not None]
        row = 0
        while row < len(self.sequences):
            if self.sequences[row].finish is None:
                row += 1
                continue
            last = len(self.sequences) - 1
            moved = self.sequences.pop()
            if row != last:
                self.sequences[row] = moved
                if moved.finish is None:
                    self._decoder.cache.copy_row(last, row, moved.length - 1)
        return finished

    def evict(self) -> list[Sequence]:
        """Take every sequence out, with its tokens; its cache is worth nothing under other weights."""
        out, self.sequences = self.sequences, []
        return out


def _rounded(tokens: int) -> int:
    return -(-tokens // ROUNDING) * ROUNDING
