"""The local engine as a side: it sees every request's cap; where a response ends, it learns at the end."""

import asyncio
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from serving import answer, requests, settings, take_stdout

from strop.engines.base import Request
from strop.engines.local import batch
from strop.engines.local.engine import LocalEngine
from strop.nn.loading import CausalLM, load_model
from strop.runtime.compute import Compute
from strop.sample import Sampling


def end_at(cuts: dict[str, int]) -> None:
    """Responses stop after so many tokens, as if a stop id had been drawn: admission plans with the cap."""
    accept = batch.Sequence.accept

    def cut(self: batch.Sequence, token: int, logp: float, version: int) -> None:
        accept(self, token, logp, version)
        if self.finish is None and len(self.ids) >= cuts[self.request.id]:
            self.finish = "stop"

    batch.Sequence.accept = cut


async def timed(model: CausalLM, max_tokens: int, work: dict[str, Any], cuts: dict[str, int]) -> float:
    """Seconds until every response is there; the engine is new, so that nothing is cached."""
    sampling = Sampling(max_tokens=work["cap"], ignore_eos=True)
    asked = []
    for p, (ids, lengths) in enumerate(zip(work["prompts"], work["lengths"], strict=True)):
        for i, length in enumerate(lengths):
            cuts[f"{p}/{i}"] = length
            asked.append(Request(f"{p}/{i}", np.array(ids, np.int32), sampling, seed=p * 1000 + i))
    compute = Compute()
    engine = LocalEngine(model, compute, max_tokens=max_tokens, stop_ids=())
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(engine.serve())
        began = time.perf_counter()
        done = await asyncio.gather(*(engine.generate(request) for request in asked))
        seconds = time.perf_counter() - began
        serving.cancel()
    compute.close()
    drawn = {request.id: len(reply.ids) for request, reply in zip(asked, done, strict=True)}
    assert drawn == {name: cuts[name] for name in drawn}, "a response has not the length that it was to have"
    return seconds


def main() -> None:
    """`threads`, `model`, `dtype`, `max_tokens`."""
    to, given = take_stdout(), settings()
    torch.set_num_threads(given["threads"])
    model = load_model(Path(given["model"]), getattr(torch, given["dtype"]))
    cuts: dict[str, int] = {}
    end_at(cuts)
    answer(to, parameters=sum(p.numel() for _, p in model.named_parameters()))
    for work in requests():
        torch.set_num_threads(work.get("threads", given["threads"]))
        answer(to, seconds=asyncio.run(timed(model, given["max_tokens"], work, cuts)))


if __name__ == "__main__":
    main()
