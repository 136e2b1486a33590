"""How long user code of a rollout may take: past it, an error that says for how long it was waited."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
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
                return await _Rest(begun, waits_for)
    except TimeoutError as late:
        raise error(_late(what, seconds)) from late


def _late(what: str, seconds: float) -> str:
    return f"{what}: no answer after {seconds:g} s"


async def _called(call: Callable[[], Awaitable[T]]) -> T:
    return await call()


class _Rest(Generator[Any, Any, T]):
    """Awaits what was begun by hand and waits for something."""

    def __init__(self, begun: Coroutine[Any, Any, T], waits_for: object) -> None:
        self._begun = begun
        self._first = [waits_for]

    def __await__(self) -> Generator[Any, Any, T]:
        return self

    def send(self, value: object) -> object:
        return self._first.pop() if self._first else self._begun.send(value)

    def throw(self, *error: Any) -> object:
        return self._begun.throw(*error)
