"""How long user code of a rollout may take: past it, an error that says for how long it was waited."""

import asyncio
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from strop.errors import Recorded, boundary

T = TypeVar("T")


@asynccontextmanager
async def within(seconds: float, error: type[Recorded], what: str) -> AsyncIterator[None]:
    """A boundary with a deadline: whatever the block raises becomes `error`, and so does taking too long."""
    try:
        async with asyncio.timeout(seconds):
            with boundary(error, what):
                yield
    except TimeoutError as late:
        raise error(_late(what, seconds)) from late


async def answer(call: Callable[[], Awaitable[T]], *, seconds: float, error: type[Recorded], what: str) -> T:
    """What a call gives, as in a block of `within`. A deadline is set when it begins to wait for something:
    code that never does cannot be cut off, and most answers come at once."""
    latest = asyncio.get_running_loop().time() + seconds
    begun = _called(call)
    with boundary(error, what):
        try:
            waits_for = begun.send(None)
        except StopIteration as ended:
            at_once: T = ended.value
            return at_once
    try:
        async with asyncio.timeout_at(latest):
            with boundary(error, what):
                return await _rest(begun, waits_for)
    except TimeoutError as late:
        raise error(_late(what, seconds)) from late


def _late(what: str, seconds: float) -> str:
    return f"{what}: no answer after {seconds:g} s"


async def _called(call: Callable[[], Awaitable[T]]) -> T:
    return await call()


@types.coroutine
def _rest(begun: Coroutine[Any, Any, T], waits_for: object) -> Generator[Any, Any, T]:
    """Awaits what has been begun by hand and waits for something."""
    while True:
        try:
            go_on = partial(begun.send, (yield waits_for))
        except BaseException as thrown:  # by the event loop, into what waits
            go_on = partial(begun.throw, thrown)
        try:
            waits_for = go_on()
        except StopIteration as ended:
            value: T = ended.value
            return value
