"""One step as one line of a table that fits 100 columns."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

_STATIONS = ("rollout", "train", "sync")
_BAR = 6
_REWARD = 12
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def header(record: Mapping[str, Any]) -> str:
    """What stands over the lines of such records: of given rows the loss, as there are no rewards."""
    measure = "loss" if _is_given(record) else "reward"
    return (
        f"{'step':>7}  {measure:<{_REWARD}}  {'reply tok':>9}  {'rollout tok/s':>13}  {'train tok/s':>11}"
        f"  {'step s':>6}  {'roll/train/sync/rest %':>22}  {'left':>6}"
    )


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds by the clock of whoever watches: what evaluation and checkpoints cost is in them."""

    step: float
    """Since the line before."""
    left: float
    """Until the end of the run."""


def step_line(record: Mapping[str, Any], *, steps: int, pace: Pace, with_bar: bool) -> Text:
    """The line under `header`. What the record lacks, or is not finite, is shown as –."""
    reward = _number(record, "train/loss" if _is_given(record) else "reward/mean")
    shown = _shown(reward, ".3f" if abs(reward or 0) < 10 else ".4g")
    has_bar = with_bar and reward is not None and not _is_given(record)
    bar = _bar(reward) if has_bar and reward is not None else ""
    return Text.assemble(
        f"{record['step'] + 1:>{max(6 - len(str(steps)), 1)}}/{steps}  ",
        (f"{shown} ", "bold"),
        (f"{bar:<{_REWARD - 1 - len(shown)}}", "green"),
        f"  {_of(record, 'rollout/response_tokens', '.1f'):>9}",
        f"  {_of(record, 'rollout/tokens_per_s', ',.0f'):>13}",
        f"  {_of(record, 'train/tokens_per_s', ',.0f'):>11}",
        f"  {pace.step:>6{'.1f' if pace.step < 1000 else '.0f'}}",
        (f"  {_split(record, pace.step):>22}", "dim"),
        f"  {duration(pace.left):>6}",
    )


def _is_given(record: Mapping[str, Any]) -> bool:
    return "reward/mean" not in record


def duration(seconds: float) -> str:
    """`42 s`, `3:07`, `2 h 05`, `5 d`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    if whole < 100 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d}"
    return f"{whole // 86400} d"


def _split(record: Mapping[str, Any], step_s: float) -> str:
    """Shares of the step; the rest is evaluation, checkpoints and storing. Stations may overlap."""
    seconds = [_number(record, f"time/{station}_s") or 0.0 for station in _STATIONS]
    seconds.append(max(step_s - sum(seconds), 0.0))
    total = sum(seconds)
    return "/".join(f"{100 * s / total:.0f}" for s in seconds) if total else "–"


def _bar(share: float) -> str:
    """A bar of 6 characters for a reward in [0, 1]; rewards on another scale have none."""
    if not 0 <= share <= 1:
        return ""
    eighths = round(share * _BAR * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _of(record: Mapping[str, Any], name: str, spec: str) -> str:
    return _shown(_number(record, name), spec)


def _shown(value: float | None, spec: str) -> str:
    return "–" if value is None else format(value, spec)


def _number(record: Mapping[str, Any], name: str) -> float | None:
    value = record.get(name)
    return None if value is None or not math.isfinite(value) else float(value)
