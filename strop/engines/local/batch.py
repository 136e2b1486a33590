"""The running batch: which sequence has which row, who may come in, and one step for all of them.

A step runs in the compute thread, parts of it in lanes; nothing here waits for the event loop.
"""

import asyncio
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.engines.base import Completion, Finish, Request
from strop.engines.local.capacity import Room
from strop.engines.local.decoder import Decoder
from strop.engines.local.lanes import Lanes
from strop.engines.local.prefixes import Prefix
from strop.engines.local.sampler import Drawn, draw
from strop.engines.local.stopping import StopTexts
from strop.kept import Kept

ROWS_OF_A_LANE = 12
"""With fewer, reading the weights once for each lane costs about as much as lanes save."""
WORTH_MOVING = 2
"""Rows from one lane to another: copying what one has seen takes as long as a row of some steps."""


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

    @property
    def most_own(self) -> int:
        """Tokens that it may add to its prefix, the one that it has or would have; the last drawn is never
        fed."""
        prefix = self.length if self.prefix is None else len(self.prefix.ids)
        return len(self.request.ids) + self.request.sampling.max_tokens - prefix - 1

    @property
    def slot(self) -> int:
        assert self.prefix is not None, "a sequence of the batch has one"
        return self.prefix.slot

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
    """Sequences in the rows of pools, one for each lane, and their prefixes in slots of the cache."""

    def __init__(self, decoder: Decoder, lanes: Lanes, *, max_tokens: int) -> None:
        self._decoder, self._lanes = decoder, lanes
        self._max_tokens = max_tokens
        self._pools: list[list[Sequence]] = [[] for _ in decoder.own]
        """By row"""
        self._prefixes: list[Prefix] = []
        self._by_ids: dict[bytes, Prefix] = {}
        self.version = 0

    @property
    def sequences(self) -> list[Sequence]:
        """Of all pools, one after the other."""
        return [sequence for pool in self._pools for sequence in pool]

    def admit(self, waiting: list[Sequence]) -> list[Sequence]:
        """Take from the front of `waiting` what fits into the cache; returns those taken."""
        taken: list[Sequence] = []
        known, room, is_empty = set(self._by_ids), self._room(), not self.sequences
        for sequence in waiting:
            ids = sequence.prefix_ids()
            then = room.with_own(sequence.most_own)
            if ids.tobytes() not in known:
                then = then.with_prefix(len(ids))
            # An empty batch always takes one: a request that can never fit was refused before.
            if then.tokens > self._max_tokens and not (is_empty and not taken):
                break
            room = then
            known.add(ids.tobytes())
            taken.append(sequence)
        return taken

    def _room(self) -> Room:
        """Taken; what an empty cache holds does not count, since it is made anew."""
        room = Room(len(self._prefixes), self._decoder.prefixes.capacity if self._prefixes else 0)
        for sequence in self.sequences:
            room = room.with_own(sequence.most_own)
        return room

    @torch.inference_mode()
    def step(self, admitted: list[Sequence]) -> list[Sequence]:
        """Prefill the admitted sequences and draw their first tokens, then one token for every earlier one.

        Returns the sequences that finished; the others stay.
        """
        if any(self._pools):
            self._go_on()
        if admitted:
            self._prefill(admitted)
            self._seat(admitted)
            self._accept(admitted, self._drawn_first(admitted))
        return self.drop_finished()

    def _go_on(self) -> None:
        shares = self._shares()
        if len(shares) == 1 and not self._decoder.computes_alone:
            self._accept(self._of(shares[0]), self._drawn_next(shares[0]))
            return
        for share, drawn in zip(shares, self._lanes.each(self._drawn_next, shares), strict=True):
            self._accept(self._of(share), drawn)

    def _shares(self) -> list[list[int]]:
        """The pools of each lane."""
        num = min(len(self._pools), len(self.sequences) // ROWS_OF_A_LANE)
        if num < 2:
            return [list(range(len(self._pools)))]
        self._balance()
        shares = [list(range(first, len(self._pools), num)) for first in range(num)]
        return [share for share in shares if self._of(share)]

    def _balance(self) -> None:
        """Lanes wait for the one that has the most rows."""
        pools = sorted(zip(self._pools, self._decoder.own, strict=True), key=lambda pool: len(pool[0]))
        (few, few_blocks), (many, many_blocks) = pools[0], pools[-1]
        num = (len(many) - len(few)) // 2
        if num >= WORTH_MOVING:
            many_blocks.give_last(num, few_blocks)
            few += many[-num:]
            del many[-num:]

    def _of(self, pools: list[int]) -> list[Sequence]:
        return [sequence for pool in pools for sequence in self._pools[pool]]

    @torch.inference_mode()
    def _drawn_next(self, pools: list[int]) -> Drawn:
        sequences = self._of(pools)
        logits_BV = self._decoder.decode(
            [pool for pool in pools if self._pools[pool]],
            np.array([s.ids[-1] for s in sequences], np.int64),
            np.array([s.slot for s in sequences], np.int64),
            np.array([len(p.ids) for p in self._prefixes], np.int64),
        )
        return _draw(sequences, logits_BV)

    def _drawn_first(self, sequences: list[Sequence]) -> Drawn:
        prefixes = [s.prefix for s in sequences if s.prefix is not None]
        return _draw(sequences, self._decoder.after_prefixes(prefixes))

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
        self._decoder.prefixes.reserve([len(prefix.ids) for prefix in new], in_use=len(known))
        self._decoder.prefill(new, known)

    def _seat(self, admitted: list[Sequence]) -> None:
        """Each in the pool that has the fewest."""
        for sequence in admitted:
            min(self._pools, key=len).append(sequence)
        for pool, blocks in zip(self._pools, self._decoder.own, strict=True):
            blocks.add_rows(len(pool) - blocks.num_rows)

    def _accept(self, sequences: list[Sequence], drawn: Drawn) -> None:
        for row, kept in drawn.kept.items():
            sequences[row].kept.append(kept)
        for sequence, token, logp in zip(sequences, drawn.ids, drawn.logp, strict=True):
            sequence.accept(int(token), float(logp), self.version)

    @torch.inference_mode()
    def drop_finished(self) -> list[Sequence]:
        """Take finished sequences out and close the rows and slots up; returns them."""
        finished: list[Sequence] = []
        for pool, blocks in zip(self._pools, self._decoder.own, strict=True):
            rows = [row for row, sequence in enumerate(pool) if sequence.finish is not None]
            finished += [pool[row] for row in rows]
            blocks.drop(rows)
            for row in reversed(rows):
                self._leave_prefix(pool[row])
                last = pool.pop()
                if row < len(pool):
                    pool[row] = last
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
        out = self.sequences
        for sequence in out:
            sequence.prefix = None
        for pool, blocks in zip(self._pools, self._decoder.own, strict=True):
            pool.clear()
            blocks.drop_all()
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
