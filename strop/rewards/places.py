"""`Places`: so many calls at once."""

import asyncio
from dataclasses import dataclass, field


@dataclass
class Places:
    """A semaphore of `most` for whichever event loop runs: `strop doctor` has one after another."""

    most: int
    _loop: asyncio.AbstractEventLoop | None = field(init=False, default=None, repr=False)
    _free: asyncio.Semaphore = field(init=False, repr=False)

    def here(self) -> asyncio.Semaphore:
        """To be held for the time of a call."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._free = loop, asyncio.Semaphore(self.most)
        return self._free
