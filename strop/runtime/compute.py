"""One thread for all heavy work of a process, so that the event loop never blocks.

A single thread also means one team of compute threads: two Python threads that both call torch would
each bring a team of their own, and the teams would fight for the cores. What runs in it may hand parts of its
work to threads that compute alone, and wait for them (`engines.local.lanes`).
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Compute:
    """Runs functions one at a time, in the order asked, in a thread of its own."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="strop-compute")

    async def __call__(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await `fn(*args, **kwargs)`. What has begun is finished even if the wait is cancelled."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, lambda: fn(*args, **kwargs))

    def close(self) -> None:
        """Finish what runs, drop what waits."""
        self._executor.shutdown(wait=True, cancel_futures=True)
