"""What prompts share is computed once, and nobody's tokens depend on it."""

import asyncio

import numpy as np

from strop.engines.local.decoder import Decoder
from strop.engines.local.prefixes import Prefix, common, parts_of
from tests.unit.engines.test_local_engine import engine_of, request, tokens_drawn

SYSTEM = list(range(20, 44))


def prefix(*ids: int) -> Prefix:
    return Prefix(np.array(ids, np.int32), slot=0)


def test_common_beginning_leaves_the_last_id_to_be_computed():
    cases = ([1, 2, 3], [1, 2, 4], 2), ([1, 2], [1, 2, 3], 1), ([1], [1], 0), ([1, 2], [3], 0)
    for ids, others, expected in cases:
        assert common(np.array(ids), np.array(others)) == expected, (ids, others)


def test_prompts_go_on_from_the_one_that_shares_most():
    a, b, c = prefix(*SYSTEM, 1, 2), prefix(*SYSTEM, 1, 3), prefix(9, 9, 9)
    first, then = parts_of([a, b, c], [])
    assert [part.prefix for part in first] == [a, c]
    assert [(part.prefix, part.source, part.shared) for part in then] == [(b, a, 25)]
    known, later = prefix(*SYSTEM, 1, 2, 7), prefix(*SYSTEM, 1, 2, 8)
    assert [part.source for part in parts_of([later], [b, known])[1]] == [known]


def counted(monkeypatch) -> list[int]:
    sizes: list[int] = []
    prefill = Decoder._prefill

    def count(self, parts):
        sizes.append(sum(part.num_tokens for part in parts))
        prefill(self, parts)

    monkeypatch.setattr(Decoder, "_prefill", count)
    return sizes


async def test_a_system_prompt_is_computed_once_for_all_prompts(tiny, monkeypatch):
    prompts = [[*SYSTEM, 60 + i, 70, 80] for i in range(4)]
    async with engine_of(tiny) as engine:
        alone = [await engine.generate(request(i, ids, n=5)) for i, ids in enumerate(prompts)]
        sizes = counted(monkeypatch)
        together = await asyncio.gather(
            *(engine.generate(request(i, ids, n=5)) for i, ids in enumerate(prompts))
        )
    assert sizes == [27, 3 * 3]
    for one, other in zip(alone, together, strict=True):
        assert one.ids.tolist() == other.ids.tolist()
        np.testing.assert_allclose(one.logp, other.logp, atol=1e-5)


async def test_a_sample_that_comes_later_joins_its_prompt(tiny, monkeypatch):
    sizes = counted(monkeypatch)
    async with engine_of(tiny) as engine:
        early = asyncio.ensure_future(engine.generate(request(0, SYSTEM, n=30)))
        await tokens_drawn(engine, 3)
        late = await engine.generate(request(1, SYSTEM, n=5))
        await early
        again = await engine.generate(request(1, SYSTEM, n=5))
    assert sizes == [24, 24]  # the second for `again`: nobody used the prompt any more
    assert late.ids.tolist() == again.ids.tolist()


async def test_nothing_of_a_prompt_outlives_its_samples(tiny):
    """A resumed run, whose engine is new, must draw the same bits."""
    async with engine_of(tiny) as engine:
        requests = [request(i, [*SYSTEM, 50 + i], n=4 + i) for i in range(6)]
        first = await asyncio.gather(*(engine.generate(r) for r in requests))
        second = await asyncio.gather(*(engine.generate(r) for r in requests))
    for one, other in zip(first, second, strict=True):
        assert one.ids.tolist() == other.ids.tolist()
        assert one.logp.tobytes() == other.logp.tobytes()
