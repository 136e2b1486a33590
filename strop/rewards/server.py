"""`Server`: JSON posted to one address, JSON back; what may pass is told from what a call would repeat."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from strop.errors import RewardFailed, first_line
from strop.rewards.base import RewardRefused

_MAX_BYTES = 1 << 20
_PASSING = {408, 425, 429}
"""Client errors that another call may not meet."""


@dataclass
class Server:
    """One address over HTTP. Raises ValueError for a `url` that is none."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    expected: str = "JSON"
    """What a reply should be, for messages."""
    _session: aiohttp.ClientSession | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url = {self.url!r}: expected http://host… or https://host…")

    async def post(self, question: bytes) -> Any:
        """The reply to one JSON text. Raises RewardFailed when the server is down, busy or slow, and
        RewardRefused when it refuses (4xx) or does not answer with JSON."""
        if self._session is None:
            # Nothing between here and the server: no redirects, no proxy of the environment, no limit of its
            # own on time or calls; those are reward.timeout_s and reward.concurrency. Nothing compressed: it
            # would be out of bounds before it could be measured.
            self._session = aiohttp.ClientSession(
                headers={"Accept-Encoding": "identity", **self.headers},
                auto_decompress=False,
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None),
            )
        try:
            status, body = await self._exchange(self._session, question)
        except aiohttp.ClientError as failed:
            raise RewardFailed(f"{self.url}: {type(failed).__name__}: {first_line(str(failed))}") from failed
        return self._read(status, body)

    async def close(self) -> None:
        """End the connections; a later call opens new ones."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()
            await asyncio.sleep(0)

    def shown(self, said: str) -> str:
        """The beginning of what the server said, for messages, which are recorded: without the values of
        headers, which some servers repeat when they refuse a key."""
        for value in filter(None, self.headers.values()):
            said = said.replace(value.removeprefix("Bearer "), "…")
        return first_line(said, 100)

    async def _exchange(self, session: aiohttp.ClientSession, question: bytes) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        async with session.post(self.url, data=question, headers=headers, allow_redirects=False) as reply:
            body = bytearray()
            async for chunk in reply.content.iter_chunked(1 << 16):
                body += chunk
                if len(body) > _MAX_BYTES:
                    raise RewardRefused(f"{self.url}: the reply is longer than {_MAX_BYTES >> 20} MiB")
            return reply.status, bytes(body)

    def _read(self, status: int, body: bytes) -> Any:
        said = body.decode(errors="replace")
        if status >= 500 or status in _PASSING:
            raise RewardFailed(f"{self.url}: HTTP {status}: {self.shown(said)}")
        if status != 200:
            raise RewardRefused(f"{self.url}: HTTP {status}: {self.shown(said)}")
        try:
            return json.loads(said)
        except ValueError as wrong:
            raise RewardRefused(f"{self.url}: expected {self.expected}; got {self.shown(said)!r}") from wrong
