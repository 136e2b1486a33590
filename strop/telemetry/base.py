"""The sink seam: who is told what a run does, while it does it."""

from collections.abc import Sequence
from typing import Any, Protocol

from strop.sample import Sample


class Sink(Protocol):
    """Shows a run. Called from the event loop's thread, never blocks for long, never fails a run."""

    def begin(self, title: str, steps: int, first_step: int = 0) -> None:
        """The run begins (or goes on) at `first_step` of `steps`."""
        ...

    def status(self, text: str) -> None:
        """What is going on at this moment, e.g. `rollout 37/64 samples · 312 tok/s`."""
        ...

    def step(self, record: dict[str, Any]) -> None:
        """A step is done: its record, as in metrics.jsonl."""
        ...

    def sample(self, sample: Sample) -> None:
        """One of the step's samples, to be looked at."""
        ...

    def evaluated(self, record: dict[str, Any]) -> None:
        """A held-out data set was evaluated: its record, as in eval/results.jsonl.

        `when` is `start`, `step 10` or `end`, `step` the number of completed steps; `mean` is None when no
        sample could be rewarded; `failed` samples could not and are not in it.
        """
        ...

    def note(self, text: str) -> None:
        """Something worth a line."""
        ...

    def end(self, lines: Sequence[str] = (), *, ok: bool = True) -> None:
        """The run is over; `lines` say how and what to do next, `ok` is false when an error ended it. Safe to
        call twice."""
        ...


class Silent:
    """A sink that shows nothing: for `telemetry.sinks = []`."""

    def begin(self, title: str, steps: int, first_step: int = 0) -> None: ...

    def status(self, text: str) -> None: ...

    def step(self, record: dict[str, Any]) -> None: ...

    def sample(self, sample: Sample) -> None: ...

    def evaluated(self, record: dict[str, Any]) -> None: ...

    def note(self, text: str) -> None: ...

    def end(self, lines: Sequence[str] = (), *, ok: bool = True) -> None: ...
