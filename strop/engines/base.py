"""The engine seam: tokens in, tokens out, with the log-prob and the weight version of each."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from strop.sample import Sampling

Finish = Literal["stop", "length", "abort"]
Weights = Iterator[tuple[str, Any]]
"""Pairs of parameter name (as in the model's checkpoint) and tensor."""


@dataclass(frozen=True, slots=True)
class Request:
    """Continue `ids`. Its noise depends on `seed` and on absolute positions only."""

    id: str
    """Names the request for `abort`."""
    ids: NDArray[np.int32]
    """[T] exact ids so far, T ≥ 1."""
    sampling: Sampling
    seed: int
    """64 bits; equal seeds draw equal noise at equal positions, however the request is batched or resumed."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What the engine drew: R new tokens. A stop id that ended it is the last of them, and so is the token
    that completed a stop text, even where it says more."""

    ids: NDArray[np.int32]
    """[R]"""
    logp: NDArray[np.float32]
    """[R] under the effective sampling distribution: at its temperature, over the kept ids alone."""
    versions: NDArray[np.int32]
    """[R] version of the weights that drew each token, stamped where it was drawn."""
    finish: Finish
    extras: dict[str, NDArray[Any]] = field(default_factory=dict)
    """Unless `sampling.keeps_all`: the ids that each token was drawn from, ascending, as `top_p_token_ids`
    (int32) with `top_p_token_offsets` (int64 [R + 1], from 0); see `strop.kept`."""


class Engine(Protocol):
    """Turns tokens into tokens. Every method is awaited; none blocks the event loop."""

    async def generate(self, request: Request) -> Completion:
        """Draw up to `request.sampling.max_tokens` tokens.

        Raises TooLong if the request can never fit, EngineFailed if the engine broke. When the caller is
        cancelled, the request is forgotten.
        """
        ...

    async def abort(self, ids: set[str] | None = None) -> None:
        """End these requests (all, if None) at a token boundary; they complete with finish `abort` and
        keep the tokens drawn so far."""
        ...

    async def pause(self) -> None:
        """Stop drawing at the next token boundary; requests stay and new ones wait."""
        ...

    async def resume(self) -> None:
        """Go on drawing."""
        ...

    async def load(self, weights: Weights, version: int) -> None:
        """Put new weights in between two tokens: later tokens carry `version`. Running sequences go on
        from their exact ids with a cache recomputed under the new weights."""
        ...

    async def release(self) -> None:
        """Give back the memory of the cache; nothing may be running."""
        ...

    async def restore(self) -> None:
        """Take it again."""
        ...

    async def health(self) -> dict[str, Any]:
        """`version`, `running`, `waiting`, `cache_tokens`; raises EngineFailed if it is broken."""
        ...

    async def close(self) -> None:
        """End the engine; what runs is aborted."""
        ...
