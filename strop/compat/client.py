"""`slime.utils.http_utils`: what functions post with."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import aiohttp

from strop.errors import first_line

RETRY_S = 1.0


async def post(
    url: str, payload: Any, max_retries: int = 60, headers: Mapping[str, str] | None = None
) -> Any:
    """The JSON that a server answers. A server that cannot be reached, or answers 5xx, is asked again each
    second; what it refuses (4xx) is a ValueError at once, with its words."""
    return await _asked("POST", url, max_retries, json=payload, headers=headers)


async def get(url: str, max_retries: int = 60) -> Any:
    """The same without a payload."""
    return await _asked("GET", url, max_retries)


async def _asked(method: str, url: str, max_retries: int, **request: Any) -> Any:
    for attempt in range(max_retries + 1):
        try:
            return await _once(method, url, **request)
        except (aiohttp.ClientConnectionError, _ServerFailed):
            if attempt == max_retries:
                raise
        await asyncio.sleep(RETRY_S)
    raise AssertionError("the last attempt returns or raises")


class _ServerFailed(OSError):
    """5xx."""


async def _once(method: str, url: str, **request: Any) -> Any:
    # No deadline here: a long reply is not a late one, and the whole function has a deadline of its own.
    unhurried = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(timeout=unhurried) as session,
        session.request(method, url, **request) as response,
    ):
        text = await response.text()
        if response.status >= 500:
            raise _ServerFailed(f"{url}: {response.status}: {first_line(text)}")
        if response.status >= 400:
            raise ValueError(f"{url}: {response.status}: {first_line(text)}")
        return json.loads(text) if text[:1] in "{[" else text
