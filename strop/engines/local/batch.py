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
from strop.engines.local.cache import KVCache
from strop.engines.local.capacity import Room
from strop.engines.local.decoder import Decoder
from strop.engines.local.lanes import Lanes
from strop.engines.local.prefixes import Prefix
from strop.engines.local.sampler import Drawn, draw
from strop.engines.local.stopping import StopTexts
from strop.kept import Kept

ROWS_OF_A_LANE = 16
"""With fewer, reading the weights once for each lane costs about as much as lanes save."""


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
    prefix: Prefix | None = None
    """While it is in the batch."""

    @property
    def length(self) -> int:
        return len(self.request.ids) + len(self.ids)

    def prefix_ids(self) -> NDArray[np.int32]:
        """The exact ids so far, which are computed together when it is admitted."""
        if not self.ids:
            return self.request.ids
        return np.concatenate([self.request.ids, np.array(self.ids, np.int32)])

    def most_own(self, prefix: int) -> int:
        """Cache entries that it may need after a prefix of so many tokens; the last drawn is never fed."""
        return len(self.request.ids) + self.request.sampling.max_tokens - prefix - 1

    @property
    def slot(self) -> int:
        assert self.prefix is not None, "a sequence of the batch has one"
        return self.prefix.slot

    @property
    def own(self) -> int:
        """Tokens drawn since its prefix was computed."""
        assert self.prefix is not None, "a sequence of the batch has one"
        return self.length - len(self.prefix.ids)

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
    """Sequences in rows 0 … n − 1 of the cache, in order of admission, and their prefixes in its slots."""

    def __init__(self, decoder: Decoder, lanes: Lanes, *, max_tokens: int) -> None:
        self._decoder, self._lanes = decoder, lanes
        self._max_tokens = max_tokens
        self.sequences: list[Sequence] = []
        self._prefixes: list[Prefix] = []
        self._by_ids: dict[bytes, Prefix] = {}
        self.version = 0

    def admit(self, waiting: list[Sequence]) -> list[Sequence]:
        """Take from the front of `waiting` what fits into the cache; returns those taken."""
        taken: list[Sequence] = []
        known, slots, rows = (
            set(self._by_ids),
            self._room(self._decoder.prefixes),
            self._room(self._decoder.own),
        )
        for sequence in waiting:
            ids = sequence.prefix_ids()
            is_new = ids.tobytes() not in known
            slots_then = slots.with_one(len(ids)) if is_new else slots
            rows_then = rows.with_one(sequence.most_own(len(ids)))
            # An empty batch always takes one: a request that can never fit was refused before.
            if rows.num and slots_then.tokens + rows_then.tokens > self._max_tokens:
                break
            slots, rows = slots_then, rows_then
            known.add(ids.tobytes())
            taken.append(sequence)
        return taken

    def _room(self, cache: KVCache) -> Room:
        """In use; what an empty cache holds does not count, since it is made anew."""
        if not self.sequences:
            return Room(0, 0)
        num = len(self.sequences) if cache is self._decoder.own else len(self._prefixes)
        return Room(num, cache.capacity)

    @torch.inference_mode()
    def step(self, admitted: list[Sequence]) -> list[Sequence]:
        """Prefill the admitted sequences and draw their first tokens, then one token for every earlier one.

        Returns the sequences that finished; the others stay.
        """
        if self.sequences:
            self._go_on()
        if admitted:
            self._make_room(admitted)
            self._prefill(admitted)
            self.sequences.extend(admitted)
            self._accept(admitted, self._drawn_first(admitted))
        return self.drop_finished()

    def _go_on(self) -> None:
        rows, num = len(self.sequences), self._lanes.num
        parts = num if rows >= num * ROWS_OF_A_LANE else 1
        ends = [rows * part // parts for part in range(parts + 1)]
        shares = [range(*ends[part : part + 2]) for part in range(parts)]
        for share, drawn in zip(shares, self._lanes.each(self._drawn_next, shares), strict=True):
            self._accept(self.sequences[share.start : share.stop], drawn)

    @torch.inference_mode()
    def _drawn_next(self, rows: range) -> Drawn:
        sequences = self.sequences[rows.start : rows.stop]
        logits_BV = self._decoder.decode(
            rows,
            np.array([s.ids[-1] for s in sequences], np.int64),
            np.array([s.own - 1 for s in sequences], np.int64),
            np.array([s.slot for s in sequences], np.int64),
            np.array([len(p.ids) for p in self._prefixes], np.int64),
        )
        return _draw(sequences, logits_BV)

    def _drawn_first(self, sequences: list[Sequence]) -> Drawn:
        prefixes = [s.prefix for s in sequences if s.prefix is not None]
        return _draw(sequences, self._decoder.after_prefixes(prefixes))

    def _make_room(self, admitted: list[Sequence]) -> None:
        prefixes = {ids.tobytes(): len(ids) for ids in (s.prefix_ids() for s in admitted)}
        new = [length for key, length in prefixes.items() if key not in self._by_ids]
        own = [s.most_own(len(s.prefix_ids())) for s in admitted]
        self._decoder.prefixes.reserve(new, in_use=len(self._prefixes))
        self._decoder.own.reserve(own, in_use=len(self.sequences))

    def _prefill(self, admitted: list[Sequence]) -> None:
        """Equal prefixes (the samples of one prompt) are computed once."""
        known, new = list(self._prefixes), []
        for sequence in admitted:
            ids = sequence.prefix_ids()
            prefix = self._by_ids.get(ids.tobytes())
            if prefix is None:
                prefix = self._by_ids[ids.tobytes()] = Prefix(ids, slot=len(self._prefixes))
                self._prefixes.append(prefix)
                new.append(prefix)
            prefix.users += 1
            sequence.prefix = prefix
        self._decoder.prefill(new, known)

    def _accept(self, sequences: list[Sequence], drawn: Drawn) -> None:
        for row, kept in drawn.kept.items():
            sequences[row].kept.append(kept)
        for sequence, token, logp in zip(sequences, drawn.ids, drawn.logp, strict=True):
            sequence.accept(int(token), float(logp), self.version)

    @torch.inference_mode()
    def drop_finished(self) -> list[Sequence]:
        """Take finished sequences out and close the rows and slots up; returns them."""
        finished = [s for s in self.sequences if s.finish is not None]
        row = 0
        while row < len(self.sequences):
            if self.sequences[row].finish is None:
                row += 1
                continue
            self._leave_prefix(self.sequences[row])
            last = len(self.sequences) - 1
            moved = self.sequences.pop()
            if row != last:
                self.sequences[row] = moved
                if moved.finish is None:
                    self._decoder.own.copy_row(last, row, moved.own - 1)
        return finished

    def _leave_prefix(self, sequence: Sequence) -> None:
        prefix, sequence.prefix = sequence.prefix, None
        assert prefix is not None, "a sequence of the batch has one"
        prefix.users -= 1
        if prefix.users:
            return
        del self._by_ids[prefix.ids.tobytes()]
        moved = self._prefixes.pop()
        if moved is not prefix:
            self._decoder.prefixes.copy_row(moved.slot, prefix.slot, len(moved.ids))
            self._prefixes[prefix.slot] = moved
            moved.slot = prefix.slot

    def evict(self) -> list[Sequence]:
        """Take every sequence out, with its tokens; its cache is worth nothing under other weights."""
        out, self.sequences = self.sequences, []
        for sequence in out:
            sequence.prefix = None
        self._prefixes.clear()
        self._by_ids.clear()
        return out


def _draw(sequences: list[Sequence], logits_BV: Tensor) -> Drawn:
    return draw(
        logits_BV,
        samplings=[s.request.sampling for s in sequences],
        seeds=np.array([s.request.seed for s in sequences], np.uint64),
        positions=np.array([s.length for s in sequences], np.int64),
    )
