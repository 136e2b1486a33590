"""The picture of `strop compare`: training reward by step, a line a run."""

from collections.abc import Sequence
from pathlib import Path

from strop.cli.compare_many import short_names
from strop.cli.outcome import Outcome
from strop.errors import ConfigError
from strop.store.durable import replacing
from strop.store.reader import RunReader
from strop.telemetry.curves_svg import Captions, Line, curves_svg
from strop.telemetry.learning_curve import WINDOW


def write_plot(
    path: Path, runs: Sequence[RunReader], outcomes: Sequence[Outcome], *, level: float
) -> list[str]:
    """Draw the curves of `runs` at `path`, in place of what is there; lines that say what was drawn.

    ConfigError when no run has a training reward, RunError when the file cannot be written.
    """
    names = short_names(runs)
    lines, missing = [], []
    for name, outcome in zip(names, outcomes, strict=True):
        label = name if outcome.status == "finished" else f"{name}, {outcome.status}"
        if outcome.curve:
            lines.append(Line(label, outcome.curve))
        else:
            missing.append(name)
    if not lines:
        raise ConfigError(
            f"--plot {path}: none of these runs has a training reward, so there is nothing to draw"
        )
    captions = Captions("steps", f"training reward, mean of {WINDOW} steps")
    with replacing(path) as aside:
        # A file name may hold what is no text.
        aside.write_bytes(curves_svg(lines, captions, level=level).encode(errors="replace"))
    left_out = [f"not drawn, without a training reward: {', '.join(missing)}"] if missing else []
    return [f"plot: {path}", *left_out]
