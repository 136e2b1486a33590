"""How rewards ask a language model: what the run gives them, and what answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from strop.errors import ConfigError
from strop.render.base import Renderer
from strop.runtime.compute import Compute
from strop.sample import Sample

if TYPE_CHECKING:  # with torch, which nothing before a run needs
    from strop.engines.local.engine import LocalEngine


@dataclass(frozen=True, slots=True)
class Question:
    """One judging."""

    text: str
    noise: int
    """64 bits: equal questions with equal noise are answered alike, by a model in this process."""


class Asked(Protocol):
    """A language model that answers."""

    async def ask(self, question: Question) -> str:
        """What it generated, and nothing else. Raises RewardFailed."""
        ...

    async def close(self) -> None:
        """End connections; more than once is harmless."""
        ...


ScoreEnds = Callable[[Sequence[Sample]], list[float]]
"""What a reward model makes of samples, in their order."""


def _scores_nothing(path: Path) -> ScoreEnds:
    raise ConfigError(f"reward model {path}: nothing scores in this place")


@dataclass(frozen=True, slots=True)
class Host:
    """What a run has for models that answer within it."""

    engine: "LocalEngine"
    """The policy's."""
    renderer: Renderer
    compute: Compute
    policy: Path = Path()
    """Where the policy came from."""
    open_scorer: Callable[[Path], ScoreEnds] = _scores_nothing
    """Loads a reward model, whose scores are to be computed in `compute`."""


class Guest(Protocol):
    """A model that answers within the run."""

    def prepare(self) -> None:
        """See that it can be served. Raises ConfigError."""
        ...

    def enter(self, host: Host) -> "LocalEngine | None":
        """Answer from now on; returns an engine that has to be served behind the policy's, unless that one
        answers itself."""
        ...

    def size_bytes(self) -> int:
        """Of weights and cache, beside what the run has anyway."""
        ...


@dataclass(frozen=True, slots=True)
class Asking:
    """What the run gives to a reward that asks: every question is a call, with a deadline, retries and a
    place of its own."""

    seed: int = 0
    """Of the run."""
    timeout_s: float = 30.0
    retries: int = 2
    concurrency: int = 64
    admit: Callable[[Guest], None] = field(default=lambda _: None)
    """Called with a model that answers within the run."""
