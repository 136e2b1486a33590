"""The last lines of a run: what came out, and what to do next."""

from pathlib import Path
from typing import Any

from strop.telemetry.passes import told


def closing_lines(path: Path, summary: dict[str, Any]) -> list[str]:
    """For a run at `path` that ended with `summary`, finished or interrupted."""
    status, steps = summary["status"], summary["steps"]
    lines = [_held_out(name, result, steps) for name, result in summary["eval"].items()]
    if status == "interrupted":
        return [*lines, f"interrupted after {steps} steps; go on with --store.dir {path} --resume"]
    lines.append(f"run directory  {path}")
    if steps == 0:  # nothing was trained, so there is no checkpoint
        return lines
    return [
        *lines,
        f"look           strop show {path} --step 0 --step last",
        f"use the model  {path}/checkpoints/step-{steps} (a Hugging Face model directory)",
    ]


def _held_out(name: str, result: dict[str, Any], steps: int) -> str:
    last = result["end"] if "end" in result else result["start"]
    means = [result["start"], result["end"]] if "end" in result and steps else [last]
    shown = " → ".join("–" if each["mean"] is None else f"{each['mean']:.3f}" for each in means)
    sure = "" if last["low"] is None else f", 95 % {last['low']:z.3f} to {last['high']:z.3f}"
    passing = "".join(
        f", pass@{k} {share:.3f}" for k, share in told(last).items() if k > 1 and share is not None
    )
    failed = f"; {last['failed']} samples failed" if last["failed"] else ""
    return f"{name}: held-out mean {shown}{sure}{passing} (n = {last['n']}{failed})"
