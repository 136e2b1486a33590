"""`Crew`: plain `def` rewards in as few threads as keep up with them.

Quick calls share one thread: to start one costs more than they do. While calls wait for a thread, threads are
added, so calls that block run side by side as if each had its own.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from strop.errors import RewardFailed, StropError
from strop.threads import outcome_of

_PATIENCE_S = 0.005
"""What waited so long for a thread is not behind quick calls."""
_IDLE_S = 1.0
"""A thread without a call for so long ends."""


@dataclass(eq=False, slots=True)
class _Call:
    fn: Callable[[], object]
    answer: asyncio.Future[object]
    """What it returned, or the StropError in its place; whoever waits may have given it up."""
    began: float | None = None
    """By the clock of the event loop."""
    is_overdue: bool = False


@dataclass(eq=False, slots=True)
class Crew:
    """Runs calls for one event loop, in the order given.

    A thread cannot be stopped: a call that is past its deadline keeps its thread until it really ends. When
    every thread is held so, calls fail instead of waiting for ever.
    """

    loop: asyncio.AbstractEventLoop
    what: str
    """Opens every message."""
    timeout_s: float = field(kw_only=True)
    """For one call, from when it begins."""
    most: int = field(kw_only=True)
    """Threads at once."""
    _waiting: SimpleQueue[_Call] = field(init=False, default_factory=SimpleQueue)
    _running: set[_Call] = field(init=False, default_factory=set)
    _ended: deque[tuple[_Call, object]] = field(init=False, default_factory=deque)
    """Told to the event loop together: waking it costs more than a quick call."""
    _threads: set[threading.Thread] = field(init=False, default_factory=set)
    _num_given: int = field(init=False, default=0)
    _num_open: int = field(init=False, default=0)
    """Given, and neither ended nor refused."""
    _num_overdue: int = field(init=False, default=0)
    _is_woken: bool = field(init=False, default=False)
    _is_watched: bool = field(init=False, default=False)
    _alarm: asyncio.TimerHandle | None = field(init=False, default=None)

    async def __call__(self, fn: Callable[[], object]) -> object:
        """What `fn()` returns. Raises the StropError that it raised or that tells what else came of it."""
        if self._num_overdue == self.most:
            raise self._full()
        call = _Call(fn, self.loop.create_future())
        self._num_given, self._num_open = self._num_given + 1, self._num_open + 1
        self._waiting.put(call)
        if not self._is_watched:
            self._is_watched = True
            self.loop.call_later(_PATIENCE_S, self._keep_up, self._num_given)
        if not self._threads:
            self._add_thread()
        if self._alarm is None:
            self._alarm = self.loop.call_later(self.timeout_s, self._give_up)
        answer = await call.answer
        if isinstance(answer, StropError):
            raise answer
        return answer

    def _keep_up(self, num_given: int) -> None:
        """Twice the threads, while one of the first `num_given` calls, known since the last look, waits."""
        waiting = self._waiting.qsize()
        if self._num_given - waiting < num_given:
            more = min(waiting, max(1, len(self._threads)), self.most - len(self._threads))
            for _ in range(more):
                self._add_thread()
        self._is_watched = waiting > 0
        if self._is_watched:
            self.loop.call_later(_PATIENCE_S, self._keep_up, self._num_given)

    def _add_thread(self) -> None:
        # A daemon, not a thread of the library's pools: a call that never ends must not hold up the exit.
        thread = threading.Thread(target=self._work, daemon=True, name=self.what)
        self._threads.add(thread)
        thread.start()

    def _work(self) -> None:
        try:
            with suppress(Empty):
                while True:
                    self._do(self._waiting.get(timeout=_IDLE_S))
        finally:
            self._threads.discard(threading.current_thread())

    def _do(self, call: _Call) -> None:
        call.began = self.loop.time()
        self._running.add(call)
        outcome: object = RewardFailed(f"{self.what}: it ended its thread")
        try:
            if not call.answer.cancelled():
                outcome = outcome_of(call.fn, error=RewardFailed, what=self.what)
        finally:
            self._ended.append((call, outcome))
            if not self._is_woken:
                self._is_woken = True
                with suppress(RuntimeError):  # the run has ended and closed its loop: nobody asks any more
                    self.loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        self._is_woken = False  # before it is looked at what has ended: what ends later wakes the loop anew
        while self._ended:
            call, outcome = self._ended.popleft()
            self._running.discard(call)
            self._num_overdue -= call.is_overdue
            self._answer(call, outcome)

    def _answer(self, call: _Call, outcome: object) -> None:
        self._num_open -= 1
        if not call.answer.done():
            call.answer.set_result(outcome)

    def _give_up(self) -> None:
        """Fail what is late, and what waits if nothing else is left; look again when the next may be late."""
        self._tell()
        now, running = self.loop.time(), [call for call in list(self._running) if not call.is_overdue]
        late = [call for call in running if call.began is not None and now >= call.began + self.timeout_s]
        for call in late:
            call.is_overdue = True
            self._num_overdue += 1
            if not call.answer.done():
                call.answer.set_result(self._late())
        if self._num_overdue == self.most:
            with suppress(Empty):
                while True:
                    self._answer(self._waiting.get_nowait(), self._full())
        began = [call.began for call in running if call.began is not None and not call.is_overdue]
        self._alarm = None
        if self._num_open > self._num_overdue:
            self._alarm = self.loop.call_at(min(began, default=now) + self.timeout_s, self._give_up)

    def _late(self) -> RewardFailed:
        return late(self.what, self.timeout_s)

    def _full(self) -> RewardFailed:
        return RewardFailed(
            f"{self.what}: all {self.most} calls at once (reward.concurrency) "
            f"are past {self.timeout_s:g} s and still running"
        )


def late(what: str, timeout_s: float) -> RewardFailed:
    """No answer before the deadline of one call."""
    return RewardFailed(f"{what}: no answer after {timeout_s:g} s (reward.timeout_s)")
