"""A plain `def` of the user's in a thread of its own: it holds up neither the event loop nor the exit."""

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from strop.errors import Recorded, StropError, boundary
from strop.plugins import is_async


def threaded(call: Callable[[], object], *, error: type[Recorded], what: str) -> asyncio.Future[object]:
    """Completes with what the call returned, or with the StropError that it raised."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[object] = loop.create_future()

    def work() -> None:
        outcome: object = error(f"{what}: it ended its thread")
        try:
            outcome = outcome_of(call, error=error, what=what)
        finally:
            with suppress(RuntimeError):  # the run has ended and closed its loop: nobody asks any more
                loop.call_soon_threadsafe(ended.set_result, outcome)

    # A daemon of its own, not a pool's: a call that never ends must hold up neither others nor the exit.
    threading.Thread(target=work, daemon=True, name=what).start()
    return ended


def outcome_of(call: Callable[[], object], *, error: type[Recorded], what: str) -> object:
    """What the call returned, or the StropError that it raised; for a thread."""
    try:
        with boundary(error, what):
            return call()
    except StropError as failed:
        return failed
    except SystemExit:
        return error(f"{what}: it ended its thread, as sys.exit() does")


async def called(
    fn: Callable[..., Any], call: Callable[[], object], *, error: type[Recorded], what: str
) -> object:
    """What `call`, a call of `fn`, returns: awaited if `fn` is `async def`, else in a thread. Its deadline is
    around it; a thread that is past it goes on, and what it returns is lost."""
    if is_async(fn):
        returned = call()
    else:
        thread = threaded(call, error=error, what=what)
        await asyncio.wait({thread})  # which leaves the thread's future alone when the wait is cut off
        returned = thread.result()
        if isinstance(returned, StropError):
            raise returned
    return await returned if inspect.isawaitable(returned) else returned
