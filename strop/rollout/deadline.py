"""How long user code of a rollout may take: past it, an error that says for how long it was waited."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from strop.errors import Recorded, boundary


@asynccontextmanager
async def within(seconds: float, error: type[Recorded], what: str) -> AsyncIterator[None]:
    """A boundary with a deadline: whatever the block raises becomes `error`, and so does taking too long."""
    try:
        async with asyncio.timeout(seconds):
            with boundary(error, what):
                yield
    except TimeoutError as late:
        raise error(f"{what}: no answer after {seconds:g} s") from late
