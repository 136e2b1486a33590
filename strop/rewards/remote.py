"""A reward on another machine: each sample is posted to a server, which replies with what it is worth."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from strop.rewards.base import RewardRefused
from strop.rewards.server import Server
from strop.sample import Sample


@dataclass
class Remote:
    """What a server says: `{"prompt", "response", "label"}` is posted to `url` as JSON (slime's remote_rm).

    The reply is a number, or a table of scores of which `reward.score_key` names one. A server that is down,
    busy or slow is tried again; one that refuses (4xx) or does not answer with JSON is not.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    _server: Server = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._server = Server(self.url, self.headers, expected="JSON, a number or a table of scores")

    async def __call__(self, sample: Sample) -> Any:
        """Of one finished sample. Raises RewardFailed."""
        return await self._server.post(_question(sample))

    async def close(self) -> None:
        """End the connections; a later call opens new ones."""
        await self._server.close()


def _question(sample: Sample) -> bytes:
    asked = {"prompt": sample.prompt, "response": sample.response, "label": sample.label}
    try:
        return json.dumps(asked).encode()
    except TypeError as wrong:
        raise RewardRefused(f"prompt {sample.prompt_id!r} cannot be sent: {wrong}") from wrong
