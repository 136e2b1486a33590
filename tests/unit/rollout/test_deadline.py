"""`answer`: what is begun by hand and then awaited behaves as if it had been awaited from the start."""

import asyncio

import pytest

from strop.errors import EnvironmentFailed
from strop.rollout.deadline import answer


async def asked(call, *, seconds=5.0):
    return await answer(call, seconds=seconds, error=EnvironmentFailed, what="environment mine")


async def test_an_answer_given_at_once_sets_no_deadline():
    async def at_once():
        return 4

    assert await asked(at_once, seconds=-1.0) == 4


async def test_waits_give_values_and_errors_to_the_code_that_waits():
    loop = asyncio.get_running_loop()
    value, error = loop.create_future(), loop.create_future()

    async def waits():
        given = await value
        with pytest.raises(KeyError, match="no"):
            await error
        await asyncio.sleep(0)
        return given + 1

    loop.call_soon(value.set_result, 3)
    loop.call_later(0.01, error.set_exception, KeyError("no"))
    assert await asked(waits) == 4


async def test_an_error_after_a_wait_is_recorded():
    async def breaks():
        await asyncio.sleep(0)
        raise ValueError("bad")

    with pytest.raises(EnvironmentFailed, match=r"^environment mine: ValueError: bad$"):
        await asked(breaks)


async def test_a_late_answer_is_cut_off_where_it_waits():
    told = []

    async def slow():
        try:
            async with asyncio.timeout(30):
                await asyncio.sleep(20)
        finally:
            told.append("closed")

    with pytest.raises(EnvironmentFailed, match=r"^environment mine: no answer after 0\.02 s$"):
        await asked(slow, seconds=0.02)
    assert told == ["closed"]
    assert asyncio.current_task().cancelling() == 0


async def test_cancelling_who_waits_reaches_the_code():
    told = []

    async def slow():
        try:
            await asyncio.sleep(20)
        finally:
            told.append("closed")

    task = asyncio.ensure_future(asked(slow))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told == ["closed"]


async def test_what_cannot_be_awaited_is_a_fault():
    with pytest.raises(EnvironmentFailed, match="TypeError: object int can't be used in 'await' expression"):
        await asked(lambda: 4)
