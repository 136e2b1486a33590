"""Slots bound staleness; groups come out in the order in which they went in."""

import asyncio

from strop.buffer.buffer import Buffer
from strop.sample import Group, Prompt


def groups(*ids: int) -> list[Group]:
    return [Group(id=i, prompt=Prompt(id=str(i), messages=""), samples=[]) for i in ids]


async def waits(coroutine) -> bool:
    """Whether it is still waiting after everyone had a turn."""
    task = asyncio.ensure_future(coroutine)
    for _ in range(5):
        await asyncio.sleep(0)
    done = task.done()
    task.cancel()
    return not done


async def test_no_new_work_before_the_step_is_released():
    buffer = Buffer(groups_per_step=2, staleness=0)
    await buffer.admit(2)
    await buffer.put(groups(0, 1))
    taken = await buffer.take(2)
    assert await waits(buffer.admit(2))
    await buffer.release(taken)
    assert not await waits(buffer.admit(2))


async def test_staleness_one_lets_one_step_run_ahead():
    buffer = Buffer(groups_per_step=2, staleness=1)
    await buffer.admit(2)
    await buffer.admit(2)
    assert await waits(buffer.admit(2))


async def test_groups_are_taken_in_order_of_admission():
    buffer = Buffer(groups_per_step=4, staleness=0)
    await buffer.put(groups(0, 1))
    await buffer.put(groups(2, 3))
    assert [g.id for g in await buffer.take(3)] == [0, 1, 2]


async def test_take_waits_for_enough_groups():
    buffer = Buffer(groups_per_step=2, staleness=0)
    await buffer.put(groups(0))
    assert await waits(buffer.take(2))


async def test_of_ten_groups_four_are_taken_and_six_stay_in_their_order():
    buffer = Buffer(groups_per_step=10, staleness=0)
    await buffer.put(groups(*range(10)))
    assert [g.id for g in await buffer.take(4)] == [0, 1, 2, 3]
    assert [g.id for g in await buffer.take(6)] == [4, 5, 6, 7, 8, 9]


async def test_finished_groups_never_wait_to_be_put():
    buffer = Buffer(groups_per_step=4, staleness=0)
    assert not await waits(buffer.put(groups(*range(1001))))
    assert [g.id for g in await buffer.take(1001)] == list(range(1001))
