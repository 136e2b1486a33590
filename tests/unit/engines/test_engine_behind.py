"""An engine behind another one on the same compute thread: it waits its turn, and time changes nothing."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from strop.engines.base import Request
from strop.engines.local.engine import LocalEngine
from strop.nn.loading import CausalLM
from strop.runtime.compute import Compute
from strop.sample import Sampling

LENGTHS = (5, 2, 9, 4, 7)
"""Tokens that each policy sample takes, so that they do not end together."""


class Uneven(Compute):
    """Every call takes a moment longer, by chance; which engine stepped, with which requests, is kept."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._chance = random.Random(seed)
        self.steps: list[tuple[str, tuple[str, ...]]] = []

    async def __call__(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        pause = self._chance.choice([0, 0, 0.0005, 0.002])

        def slowed() -> Any:
            time.sleep(pause)
            return fn(*args, **kwargs)

        if args:
            ids = tuple(sequence.request.id for sequence in args[0])
            self.steps.append(("judge" if any(id[0] == "j" for id in ids) else "policy" if ids else "", ids))
        return await super().__call__(slowed)


def request(id: str, ids: list[int], n: int) -> Request:
    sampling = Sampling(max_tokens=n, ignore_eos=True)
    return Request(id=id, ids=np.array(ids, np.int32), sampling=sampling, seed=sum(id.encode()))


async def judged(policy: LocalEngine, judge: LocalEngine, number: int) -> list[int]:
    """One sample, then two judgings of it, then one more of these."""
    sample = await policy.generate(request(f"p{number}", [10, number], LENGTHS[number]))
    first = await asyncio.gather(
        *(judge.generate(request(f"j{number}.{k}", sample.ids.tolist(), 3 + k)) for k in range(2))
    )
    again = await judge.generate(request(f"j{number}.2", first[0].ids.tolist(), 2))
    return [*sample.ids, *first[0].ids, *first[1].ids, *again.ids]


async def played(model: CausalLM, seed: int) -> tuple[list[list[int]], list[Any]]:
    compute = Uneven(seed)
    policy, judge = (LocalEngine(model, compute, max_tokens=4096, stop_ids=(256,)) for _ in range(2))
    async with asyncio.TaskGroup() as tasks:
        serving = [tasks.create_task(policy.serve()), tasks.create_task(judge.serve(ahead=policy))]
        said = await asyncio.gather(*(judged(policy, judge, number) for number in range(len(LENGTHS))))
        for task in serving:
            task.cancel()
    compute.close()
    return list(said), compute.steps


@pytest.fixture
async def quick(tiny: CausalLM) -> tuple[list[list[int]], list[Any]]:
    return await played(tiny, 0)


async def test_what_is_asked_while_the_other_works_is_one_batch_when_it_is_done(quick: Any) -> None:
    _, steps = quick
    admitted = [ids for who, ids in steps if who == "judge"]
    assert sorted(admitted[0]) == sorted(f"j{number}.{k}" for number in range(5) for k in range(2))
    assert steps.index(("judge", admitted[0])) > max(LENGTHS) - 1


@pytest.mark.parametrize("seed", [1, 2])
async def test_batches_and_tokens_do_not_depend_on_how_long_anything_takes(
    tiny: CausalLM, quick: Any, seed: int
) -> None:
    assert await played(tiny, seed) == quick
