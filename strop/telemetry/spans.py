"""`Spans`: named intervals, for the time split of a step and for a trace that a browser can show."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strop.store.durable import write_json
from strop.store.json_text import read_json


@dataclass(frozen=True, slots=True)
class Span:
    """One interval, in seconds of the clock."""

    name: str
    track: str
    """The line of the trace on which it lies: what runs side by side needs tracks of its own."""
    begin: float
    end: float


class Spans:
    """Intervals of one process, in the order in which they ended. `clock`: seconds that never go back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._spans: list[Span] = []
        self._num_split = 0

    @contextmanager
    def span(self, name: str, track: str = "loop") -> Iterator[None]:
        """Record how long the block takes, also when it raises."""
        begin = self._clock()
        try:
            yield
        finally:
            self._spans.append(Span(name, track, begin, self._clock()))

    def split(self) -> dict[str, float]:
        """Seconds by name of the spans that ended since the last call; nested ones count under both names."""
        seconds: dict[str, float] = defaultdict(float)
        for span in self._spans[self._num_split :]:
            seconds[span.name] += span.end - span.begin
        self._num_split = len(self._spans)
        return dict(seconds)

    def write(self, path: Path) -> None:
        """Put all spans at `path` as a Chrome trace, for chrome://tracing or ui.perfetto.dev.

        What an earlier process of a resumed run put there stays: each is a process of the trace. Raises
        RunError when the disk refuses.
        """
        earlier = read_json(path)["traceEvents"] if path.exists() else []
        part = max((event["pid"] for event in earlier), default=-1) + 1
        tracks = {name: number for number, name in enumerate(dict.fromkeys(s.track for s in self._spans))}
        names = [_name("process_name", f"part {part + 1}", part, 0)]
        names += [_name("thread_name", name, part, number) for name, number in tracks.items()]
        events = [
            {
                "ph": "X",
                "name": span.name,
                "pid": part,
                "tid": tracks[span.track],
                "ts": span.begin * 1e6,
                "dur": (span.end - span.begin) * 1e6,
            }
            for span in self._spans
        ]
        write_json(path, {"traceEvents": earlier + names + events, "displayTimeUnit": "ms"})


def _name(what: str, name: str, part: int, track: int) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": part, "tid": track, "args": {"name": name}}
