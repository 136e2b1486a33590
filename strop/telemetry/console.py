"""`Console`: the sink that a person watches. Live in a terminal, one plain line a step elsewhere."""

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from rich.live import Live
from rich.text import Text

from strop.sample import Sample
from strop.telemetry.footer import Footer
from strop.telemetry.passes import told
from strop.telemetry.printable import one_line
from strop.telemetry.step_line import Pace, header, step_line
from strop.telemetry.terminal import open_terminal

_QUIET_S = 30.0
"""Without a terminal, a status line appears after so long without another: slow must not look hung."""
_PACE_OF = 5
"""Steps whose mean duration gives the time left."""


class Console:
    """Shows a run on `file`, by default on standard output. Text of the model is shown, never interpreted.

    `live`: a region at the bottom says what is going on at this moment; by default if `file` is a terminal.
    """

    def __init__(
        self,
        file: TextIO | None = None,
        *,
        live: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        file = file or sys.stdout
        live = file.isatty() if live is None else live
        self._out = open_terminal(file, plain=not live)
        self._clock = clock
        self._footer = Footer(clock)
        self._live = (
            Live(self._footer, console=self._out, refresh_per_second=4, transient=True) if live else None
        )
        self._steps = 0
        self._durations: deque[float] = deque(maxlen=_PACE_OF)
        self._last_step_at = self._last_line_at = clock()
        self._header_shown = False

    def begin(self, title: str, steps: int, first_step: int = 0) -> None:
        first, *rest = title.split("\n")
        self._print(Text(first, "bold"))
        for line in rest:
            self._print(Text(line, "dim"))
        self._steps = steps
        self._last_step_at = self._clock()
        self._footer.progress(first_step, steps)
        if self._live:
            self._live.start()

    def status(self, text: str) -> None:
        self._footer.text = one_line(text, 200)
        if not self._live and self._clock() - self._last_line_at >= _QUIET_S:
            self._print(Text(f"  … {one_line(text, 90)}"))

    def step(self, record: dict[str, Any]) -> None:
        now = self._clock()
        self._durations.append(now - self._last_step_at)
        self._last_step_at = now
        done = record["step"] + 1
        if not self._header_shown:
            self._header_shown = True
            self._print(Text(header(record), "bold dim"))
        mean = sum(self._durations) / len(self._durations)
        pace = Pace(step=self._durations[-1], left=mean * (self._steps - done))
        self._print(step_line(record, steps=self._steps, pace=pace, with_bar=self._live is not None))
        self._footer.progress(done, self._steps)

    def sample(self, sample: Sample) -> None:
        reward = sample.role or "no reward"
        if sample.reward is not None:
            reward = f"reward {sample.reward:.3g}"
        facts = f"{reward} · {sample.response_length} tokens · {sample.status.value}"
        style = "dim" if sample.reward is None else "green" if sample.reward > 0 else "red"
        self._print(Text.assemble("      ┌ ", ("sample ", "bold"), (facts, style)))
        self._print(Text.assemble("      │ ", (one_line(_question(sample), 90), "dim")))
        self._print(Text.assemble("      └ ", one_line(sample.response, 90) or "(empty)"))

    def evaluated(self, record: dict[str, Any]) -> None:
        if not self._durations:  # the evaluation at the start is no part of the first step
            self._last_step_at = self._clock()
        mean, low, high = record["mean"], record["low"], record["high"]
        line = Text.assemble("  eval  ", (record["dataset"], "bold"), f"  {record['when']}  mean ")
        line.append("–" if mean is None else f"{mean:.3f}", "bold cyan")
        if low is not None:
            line.append(f" [{low:z.3f}, {high:z.3f}]", "dim")
        for k, share in list(told(record).items())[-1:]:
            if k > 1 and share is not None:
                line.append(f"  pass@{k} {share:.3f}")
        if "loss" in record:
            line.append(f"  loss {record['loss']:.4f}")
        line.append(f"  n {record['n']}")
        if record["failed"]:
            line.append(f"  {record['failed']} failed", "yellow")
        self._print(line)

    def note(self, text: str) -> None:
        self._print(Text(f"  · {one_line(text, 400)}", "yellow"))

    def end(self, lines: Sequence[str] = (), *, ok: bool = True) -> None:  # noqa: ARG002 - the error says it
        if self._live:
            self._live.stop()
        for line in lines:
            self._print(Text(line))

    def _print(self, line: Text) -> None:
        self._out.print(line, soft_wrap=True)
        self._last_line_at = self._clock()


def _question(sample: Sample) -> str:
    if isinstance(sample.prompt, str):
        return sample.prompt
    asked = [message for message in sample.prompt if message["role"] == "user"]
    return _content(asked[-1]) if asked else ""


def _content(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)
