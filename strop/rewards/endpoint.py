"""`Endpoint`: a language model behind an OpenAI-compatible address."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from strop.errors import RewardFailed, boundary
from strop.rewards.asking import Asking, Question
from strop.rewards.base import RewardRefused
from strop.rewards.crew import late
from strop.rewards.places import Places
from strop.rewards.server import Server

_BACKOFF_S = 0.1


@dataclass
class Endpoint:
    """Posts each question to `<url>/chat/completions`. Raises ValueError for a `url` that is none."""

    url: str
    model: str
    temperature: float
    max_tokens: int
    asking: Asking
    api_key: str | None = field(default=None, repr=False)
    _server: Server = field(init=False, repr=False)
    _places: Places = field(init=False, repr=False)

    def __post_init__(self) -> None:
        headers = {} if self.api_key is None else {"Authorization": f"Bearer {self.api_key}"}
        address = f"{self.url.rstrip('/')}/chat/completions"
        self._server = Server(address, headers, expected="a chat completion")
        self._places = Places(self.asking.concurrency)

    async def ask(self, question: Question) -> str:
        """Of one question, as often as the run retries. Raises RewardRefused, which another call would only
        repeat."""
        asked, attempt = self._body(question), 0
        while True:
            try:
                return await self._said(asked)
            except RewardRefused:
                raise
            except RewardFailed as failed:
                if attempt == self.asking.retries:
                    raise RewardRefused(f"{failed} (calls: {attempt + 1})") from failed
            await asyncio.sleep(_BACKOFF_S * 2**attempt)
            attempt += 1

    async def close(self) -> None:
        """End the connections; a later call opens new ones."""
        await self._server.close()

    async def _said(self, asked: bytes) -> str:
        what = f"judge {self.model}"
        async with self._places.here():
            try:
                async with asyncio.timeout(self.asking.timeout_s):
                    with boundary(RewardFailed, what):
                        return _content(await self._server.post(asked), self._server)
            except TimeoutError as caught:
                raise late(what, self.asking.timeout_s) from caught

    def _body(self, question: Question) -> bytes:
        asked: Mapping[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": question.text}],
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": question.noise % 2**31,
        }
        return json.dumps(asked).encode()


def _content(reply: Any, server: Server) -> str:
    """The text of a chat completion; of one without text, such as a refusal, nothing."""
    try:
        said: object = reply["choices"][0]["message"]["content"]
    except (LookupError, TypeError) as wrong:
        raise RewardRefused(
            f"{server.url}: expected a chat completion, got {server.shown(str(reply))!r}"
        ) from wrong
    if said is None:
        return ""
    if not isinstance(said, str):
        raise RewardRefused(
            f"{server.url}: expected text as the content of a message, got {server.shown(str(said))!r}"
        )
    return said
