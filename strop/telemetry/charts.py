"""Numbers for programs that draw them: the chart seam, and the sink that tells charts beside a person.

Charts are other people's programs and may break; then the run goes on without them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from strop.errors import Recorded, RunError, boundary
from strop.sample import Sample
from strop.telemetry.base import Sink
from strop.telemetry.scalars import eval_scalars, step_scalars


class Chart(Protocol):
    """Takes numbers by step; those of an evaluation by completed steps, which is the version it measured."""

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Finite numbers, under the names of the catalogue."""
        ...

    def close(self, *, ok: bool) -> None:
        """The run is over; `ok` is false when an error ended it."""
        ...


OpenChart = Callable[[int], Chart]
"""Called with the first step when the run begins, which is where a resumed one goes on."""


class ChartFailed(Recorded):
    """A chart raised."""


class Charts:
    """The sink that tells `main` everything and each chart its numbers.

    A chart that fails is left out from then on: `main` is told once, and `on_failed(name, why)` is called.
    """

    def __init__(
        self, main: Sink, openers: Mapping[str, OpenChart], on_failed: Callable[[str, str], None]
    ) -> None:
        self._main, self._openers, self._on_failed = main, openers, on_failed
        self._charts: dict[str, Chart] = {}

    def begin(self, title: str, steps: int, first_step: int = 0) -> None:
        self._main.begin(title, steps, first_step)
        for name, opener in self._openers.items():
            if name not in self._charts:
                with self._guarded(name):
                    self._charts[name] = opener(first_step)

    def status(self, text: str) -> None:
        self._main.status(text)

    def step(self, record: dict[str, Any]) -> None:
        self._main.step(record)
        self._write(record["step"], step_scalars(record))

    def sample(self, sample: Sample) -> None:
        self._main.sample(sample)

    def evaluated(self, record: dict[str, Any]) -> None:
        self._main.evaluated(record)
        self._write(record["step"], eval_scalars(record))

    def note(self, text: str) -> None:
        self._main.note(text)

    def end(self, lines: Sequence[str] = (), *, ok: bool = True) -> None:
        charts, self._charts = self._charts, {}
        for name, chart in charts.items():
            with self._guarded(name):
                chart.close(ok=ok)
        self._main.end(lines, ok=ok)

    def _write(self, step: int, values: Mapping[str, float]) -> None:
        for name, chart in list(self._charts.items()):
            with self._guarded(name):
                chart.write(step, values)

    @contextmanager
    def _guarded(self, name: str) -> Iterator[None]:
        try:
            with boundary(ChartFailed, name):
                yield
        except RunError as failed:
            chart = self._charts.pop(name, None)
            if chart is not None:
                with suppress(RunError), boundary(ChartFailed, name):
                    chart.close(ok=False)
            self._main.note(f"telemetry.sinks: {failed}; the run goes on without {name}")
            self._on_failed(name, str(failed))
