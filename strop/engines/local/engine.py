"""The local engine: continuous batching over our own cache, in this process."""

import asyncio
from typing import Any

import torch

from strop.engines.base import Completion, Request, Weights
from strop.engines.local.batch import RunningBatch, Sequence
from strop.engines.local.capacity import longest_sequence
from strop.engines.local.decoder import Decoder
from strop.engines.local.lanes import Lanes
from strop.engines.local.stopping import Decode, StopTexts
from strop.errors import EngineFailed, TooLong
from strop.nn.loading import CausalLM
from strop.runtime.compute import Compute

_SETTLE_TICKS = 8
"""Turns of the event loop before a step, in which everyone who is ready hands in requests. With
environments that do not wait for the outside world, the batch is then a function of the requests alone."""


class LocalEngine:
    """Serves `generate` while `serve()` runs, in a task that the caller owns.

    `stop_ids`: end a reply unless its sampling ignores them. `decode`: text of a reply, as the renderer gives
    it, called in the compute thread; needed for requests with stop texts only.
    """

    def __init__(
        self,
        model: CausalLM,
        compute: Compute,
        *,
        max_tokens: int,
        stop_ids: tuple[int, ...],
        decode: Decode | None = None,
    ) -> None:
        self._model = model
        self._compute = compute
        self._max_tokens = max_tokens
        self._stop_ids, self._decode = frozenset(stop_ids), decode
        self._stop_texts: dict[tuple[str, ...], StopTexts] = {}
        self._lanes = Lanes()
        self._decoder = Decoder(model, num_pools=self._lanes.num, max_tokens=max_tokens)
        self._batch = RunningBatch(self._decoder, self._lanes, max_tokens=max_tokens)
        self._waiting: list[Sequence] = []
        self._live: dict[str, Sequence] = {}
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._running = asyncio.Event()
        self._running.set()
        self._between_steps = asyncio.Lock()
        self._broken: str | None = None
        self.tokens_drawn = 0
        """Since the engine was made."""

    async def generate(self, request: Request) -> Completion:
        """See `engines.base.Engine`."""
        self._refuse_what_never_fits(request)
        if self._broken is not None:
            raise EngineFailed(self._broken)
        sequence = Sequence(
            request,
            self._stops_of(request),
            asyncio.get_running_loop().create_future(),
            stop_texts=self._stop_texts_of(request),
        )
        self._live[request.id] = sequence
        self._waiting.append(sequence)
        self._work.set()
        self._idle.clear()
        try:
            return await sequence.future
        except asyncio.CancelledError:
            sequence.finish = "abort"  # nobody waits for it: the next step takes it out
            raise
        finally:
            del self._live[request.id]

    def _stops_of(self, request: Request) -> frozenset[int]:
        own = frozenset() if request.sampling.ignore_eos else self._stop_ids
        return own | frozenset(request.sampling.stop_token_ids)

    def _stop_texts_of(self, request: Request) -> StopTexts | None:
        texts = request.sampling.stop
        if not texts:
            return None
        if self._decode is None:
            raise ValueError("stop texts need an engine that was made with `decode`")
        return self._stop_texts.setdefault(texts, StopTexts(self._decode, texts))

    def _refuse_what_never_fits(self, request: Request) -> None:
        needed = len(request.ids) + request.sampling.max_tokens
        limit = longest_sequence(self._max_tokens, self._model.max_positions)
        if request.id in self._live:
            raise ValueError(f"request id {request.id!r} is in use")
        if len(request.ids) == 0 or request.sampling.max_tokens < 1:
            raise ValueError("a request needs at least one id and max_tokens ≥ 1")
        outside = request.ids[(request.ids < 0) | (request.ids >= self._model.vocab_size)]
        if len(outside):
            raise ValueError(f"id {outside[0]} is none of the model's {self._model.vocab_size}")
        if needed > limit:
            raise TooLong(
                f"{len(request.ids)} tokens and {request.sampling.max_tokens} to draw are {needed}, but the "
                f"engine holds {limit} (engine.max_tokens = {self._max_tokens}, the model takes "
                f"{self._model.max_positions}); raise engine.max_tokens or make prompts shorter"
            )

    async def serve(self, *, ahead: "LocalEngine | None" = None) -> None:
        """Step while there is work, until cancelled. An error of a step breaks the engine for good.

        `ahead`: another engine on the same compute thread, which goes first. This one steps when that has
        nothing left to do: what is asked of it meanwhile waits, and is then one batch, whatever either takes.
        """
        try:
            while True:
                await self._work.wait()
                await self._running.wait()
                if ahead is not None:
                    await ahead.idle()
                for _ in range(_SETTLE_TICKS):
                    await asyncio.sleep(0)
                async with self._between_steps:
                    if self._running.is_set():
                        await self._step()
        except EngineFailed as error:
            self._broken = str(error)
            raise
        finally:
            self._broken = self._broken or "the engine was closed"
            self._fail_all(self._broken)
            self._lanes.close()

    async def _step(self) -> None:
        self._waiting = [s for s in self._waiting if s.finish is None]
        admitted = self._batch.admit(self._waiting)
        del self._waiting[: len(admitted)]
        drawn_before = len(self._batch.sequences)
        finished = await self._compute(self._batch.step, admitted)
        self.tokens_drawn += drawn_before + len(admitted)
        self._deliver(finished)
        if not self._waiting and not self._batch.sequences:
            self._work.clear()
            self._idle.set()

    async def idle(self) -> None:
        """Returns when there is nothing to draw, and nobody who is ready hands in more."""
        settled = False
        while not settled:
            await self._idle.wait()
            for _ in range(_SETTLE_TICKS):
                await asyncio.sleep(0)
            settled = self._idle.is_set()

    def _deliver(self, sequences: list[Sequence]) -> None:
        for sequence in sequences:
            if not sequence.future.done():  # its caller may have been cancelled
                sequence.future.set_result(sequence.completion())

    def _fail_all(self, why: str) -> None:
        self._waiting.clear()
        for sequence in self._live.values():
            if not sequence.future.done():
                sequence.future.set_exception(EngineFailed(why))

    async def abort(self, ids: set[str] | None = None) -> None:
        """See `engines.base.Engine`."""
        async with self._between_steps:
            chosen = [s for id, s in self._live.items() if ids is None or id in ids]
            for sequence in chosen:
                sequence.finish = "abort"
            self._waiting = [s for s in self._waiting if s.finish is None]
            await self._compute(self._batch.drop_finished)
            self._deliver(chosen)

    async def pause(self) -> None:
        """See `engines.base.Engine`."""
        self._running.clear()
        async with self._between_steps:
            pass

    async def resume(self) -> None:
        """See `engines.base.Engine`."""
        self._running.set()

    async def load(self, weights: Weights, version: int) -> None:
        """See `engines.base.Engine`. Tensors that are the engine's own (shared with a trainer in this
        process) are not copied."""
        async with self._between_steps:
            await self._compute(self._copy, weights)
            self._batch.version = version
            self._waiting[:0] = self._batch.evict()

    @torch.no_grad()
    def _copy(self, weights: Weights) -> None:
        own = dict(self._model.named_parameters())
        for name, tensor in weights:
            if own[name].data_ptr() != tensor.data_ptr():
                own[name].copy_(tensor)

    async def release(self) -> None:
        """See `engines.base.Engine`."""
        if self._batch.sequences or self._waiting:
            raise EngineFailed(f"release with {len(self._batch.sequences) + len(self._waiting)} requests")
        self._decoder.clear()

    async def restore(self) -> None:
        """The cache comes back by itself with the next request."""

    async def health(self) -> dict[str, Any]:
        """See `engines.base.Engine`."""
        if self._broken is not None:
            raise EngineFailed(self._broken)
        return {
            "version": self._batch.version,
            "running": len(self._batch.sequences),
            "waiting": len(self._waiting),
            "cache_tokens": self._decoder.tokens,
        }

    async def close(self) -> None:
        """See `engines.base.Engine`; the owner of `serve` cancels it."""
        await self.abort()
