"""`share`: trainer and engine in one process. One set of weights, or a copy when their dtypes differ."""

from strop.engines.base import Engine, Weights


class Share:
    """A `Transport` inside one process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def push(self, weights: Weights, version: int) -> None:
        """See `sync.base.Transport`."""
        await self._engine.load(weights, version)
