"""Rows that are decoded in lanes, and the lanes themselves."""

import asyncio
import threading

import numpy as np
import pytest
import torch
from fresh import fresh

from strop.engines.base import Request
from strop.engines.local import batch
from strop.engines.local.engine import LocalEngine
from strop.engines.local.lanes import MOST, Lanes
from strop.nn import narrow_product, row_attention
from strop.runtime.compute import Compute
from strop.sample import Sampling


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


async def drawn(model):
    """By requests that share prompts, end at different times, and are too many for the cache at once."""
    compute = Compute()
    engine = LocalEngine(model, compute, max_tokens=256, stop_ids=())
    asked = [
        Request(f"{i}", np.array([5, 6, 7 + i // 3], np.int32), Sampling(max_tokens=2 + 3 * (i % 4)), seed=i)
        for i in range(12)
    ]
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(engine.serve())
        replies = await asyncio.gather(*map(engine.generate, asked))
        serving.cancel()
    compute.close()
    for thread in threading.enumerate():
        if thread.name.startswith("strop-lane"):
            thread.join(10)
            assert not thread.is_alive(), "an engine that is no longer served has let its threads go"
    return replies


def same(some, others):
    for one, other in zip(some, others, strict=True):
        assert one.ids.tolist() == other.ids.tolist()
        np.testing.assert_allclose(one.logp, other.logp, atol=1e-5)


async def test_a_team_one_thread_and_lanes_draw_the_same_tokens(tiny_dir, two_threads, monkeypatch):
    model, seen, decode = fresh(tiny_dir), set(), batch.Decoder.decode

    def watched(self, pools, *given):
        seen.add(threading.current_thread().name.replace("strop-", ""))
        return decode(self, pools, *given)

    async def drawn_by(rows_of_a_lane, *, alone):
        seen.clear()
        monkeypatch.setattr(batch, "ROWS_OF_A_LANE", rows_of_a_lane)
        monkeypatch.setattr(batch.Decoder, "computes_alone", alone)
        return await drawn(model), sorted(name[: name.index("_")] for name in seen)

    monkeypatch.setattr(batch.Decoder, "decode", watched)
    monkeypatch.setattr(
        narrow_product, "LEAST", 1
    )  # threads that compute alone do it in own code, the team not
    monkeypatch.setattr(row_attention, "LEAST", 1)
    by_team, threads = await drawn_by(99, alone=False)
    assert threads == ["compute"]
    by_one, threads = await drawn_by(99, alone=True)
    assert set(threads) == {"lane"}
    by_lanes, threads = await drawn_by(1, alone=True)
    assert threads == ["lane", "lane"]
    same(by_team, by_one)
    same(by_team, by_lanes)


async def test_lanes_that_are_left_with_fewer_rows_take_some_over(tiny_dir, two_threads, monkeypatch):
    model, sizes, balance = fresh(tiny_dir), [], batch.RunningBatch._balance
    together = await drawn(model)
    monkeypatch.setattr(batch, "ROWS_OF_A_LANE", 1)
    monkeypatch.setattr(batch, "WORTH_MOVING", 1)

    def watched(self):
        before = [len(pool) for pool in self._pools]
        balance(self)
        sizes.append((before, [len(pool) for pool in self._pools]))

    def all_in_one(self, admitted):
        self._pools[0] += admitted
        for pool, blocks in zip(self._pools, self._decoder.own, strict=True):
            blocks.add_rows(len(pool) - blocks.num_rows)

    monkeypatch.setattr(batch.RunningBatch, "_balance", watched)
    monkeypatch.setattr(batch.RunningBatch, "_seat", all_in_one)
    same(together, await drawn(model))
    assert any(max(before) - min(before) > 1 for before, _ in sizes)
    assert all(max(after) - min(after) <= 1 for _, after in sizes)


def test_parts_come_back_in_order_and_compute_alone(two_threads):
    lanes = Lanes()
    assert lanes.each(lambda part: (part, torch.get_num_threads()), [3, 1]) == [(3, 1), (1, 1)]
    assert lanes.each(lambda part: (part, torch.get_num_threads()), [3]) == [(3, 1)]
    lanes.close()


def test_no_thread_outside_the_lanes_computes_with_fewer_threads(two_threads):
    lanes, counts = Lanes(), []
    lanes.each(str, [1, 2])
    other = threading.Thread(target=lambda: counts.append(torch.get_num_threads()))
    other.start()
    other.join()
    assert [torch.get_num_threads(), *counts] == [2, 2]
    lanes.close()


def test_a_part_that_fails_is_told_when_the_others_have_ended(two_threads):
    lanes, ended = Lanes(), []

    def work(part):
        if part == 0:
            raise ValueError("part 0")
        ended.append(part)

    with pytest.raises(ValueError, match="part 0"):
        lanes.each(work, [0, 1])
    assert ended == [1]
    lanes.close()


def test_many_threads_stay_a_team():
    before = torch.get_num_threads()
    torch.set_num_threads(MOST + 1)
    try:
        assert Lanes().num == 1
    finally:
        torch.set_num_threads(before)
