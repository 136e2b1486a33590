"""Plain rewards share threads: what that must not change."""

import asyncio
import threading

from strop.rewards.crew import Crew


def crew(*, most=8, timeout_s=10.0):
    return Crew(asyncio.get_running_loop(), "reward f", timeout_s=timeout_s, most=most)


async def test_quick_calls_share_threads():
    together = crew(most=512)
    threads = await asyncio.gather(*(together(threading.get_ident) for _ in range(512)))
    assert len(set(threads)) < 64


async def test_calls_that_wait_for_each_other_all_get_a_thread():
    together, barrier = crew(most=8), threading.Barrier(8)
    assert sorted(await asyncio.gather(*(together(lambda: barrier.wait(10)) for _ in range(8)))) == [
        *range(8)
    ]


async def test_a_call_that_hangs_does_not_hold_up_the_ones_behind_it():
    together, gate = crew(most=2), threading.Event()
    first = asyncio.ensure_future(together(lambda: gate.wait(10)))
    assert await asyncio.gather(*(together(lambda: 1) for _ in range(20))) == [1] * 20
    gate.set()
    assert await first is True


async def test_what_nobody_waits_for_any_more_is_not_called():
    together, gate, called = crew(most=1), threading.Event(), []
    first = asyncio.ensure_future(together(lambda: gate.wait(10)))
    second = asyncio.ensure_future(together(lambda: called.append(1)))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    gate.set()
    assert await first is True
    assert await together(lambda: 2) == 2
    assert called == []


async def test_a_call_that_ends_its_thread_leaves_one_for_the_next():
    def ends():
        raise SystemExit

    together = crew(most=1)
    ended = await asyncio.gather(together(ends), together(lambda: 1), return_exceptions=True)
    assert str(ended[0]) == "reward f: it ended its thread, as sys.exit() does"
    assert ended[1] == 1
