"""The buffer between rollout and training: slots in order of admission, so that staleness has a bound.

A group holds a slot from before its first token until its step is closed. With (staleness + 1) steps' worth
of slots, no group can be admitted more than `staleness` versions before the step that trains it.
"""

import asyncio

from strop.sample import Group


class Buffer:
    """Slots for (staleness + 1) · groups_per_step groups. One event loop; every wait is on another part of
    the run, whose failure cancels it."""

    def __init__(self, *, groups_per_step: int, staleness: int) -> None:
        self._free = (staleness + 1) * groups_per_step
        self._ready: dict[int, Group] = {}
        self._order: list[int] = []
        self._changed = asyncio.Condition()

    async def admit(self, n: int) -> None:
        """Wait for `n` free slots and take them."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._free >= n)
            self._free -= n

    async def put(self, groups: list[Group]) -> None:
        """Finished groups, in the order in which they are to be taken; their slots were admitted."""
        async with self._changed:
            for group in groups:
                self._ready[group.id] = group
                self._order.append(group.id)
            self._changed.notify_all()

    async def take(self, n: int) -> list[Group]:
        """The next `n` groups, in order; they keep their slots until `release`."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._order) >= n)
            ids, self._order = self._order[:n], self._order[n:]
            return [self._ready.pop(id) for id in ids]

    async def release(self, groups: list[Group]) -> None:
        """Their step is closed; only now may new work start in their place."""
        async with self._changed:
            self._free += len(groups)
            self._changed.notify_all()
