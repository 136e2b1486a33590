"""The live region at the bottom of the terminal: how far the run is and what it does at this moment."""

from collections.abc import Callable

from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from strop.telemetry.step_line import duration


class Footer:
    """A renderable that is drawn anew several times a second; it moves as long as the process lives."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.text = "starting"
        """What is going on."""
        self._clock = clock
        self._since = clock()
        self._done = self._steps = 0
        self._spinner = Spinner("dots", style="cyan")

    def progress(self, done: int, steps: int) -> None:
        """`done` of `steps` are complete; the time shown is since this call."""
        self._done, self._steps = done, steps
        self._since = self._clock()

    def __rich__(self) -> RenderableType:
        row = Table.grid(padding=(0, 1))
        current = min(self._done + 1, self._steps)
        row.add_row(
            self._spinner,
            Text(f"step {current}/{self._steps}", "bold"),
            ProgressBar(total=max(self._steps, 1), completed=self._done, width=20),
            Text(self.text, no_wrap=True, overflow="ellipsis"),
            Text(duration(self._clock() - self._since), "dim"),
        )
        return row
