"""Where everything is in a run directory: the contract between a run and everyone who looks at it."""

from pathlib import Path
from typing import Any

from strop.errors import ConfigError
from strop.store.json_text import read_json

FORMAT = 1
"""Of the directory as a whole; in `run.json`."""

RUN = "run.json"
"""The format of the directory, the version of strop that made it, its process and when it began."""
CONFIG = "config.json"
"""The configuration, complete, with the origin of every value; the plan and the machine."""
SUMMARY = "summary.json"
"""How the run ended, `status`: finished, interrupted or failed. Missing while it runs and after a kill."""
TRACE = "trace.json"
"""What took how long, in Chrome's trace format: open it in ui.perfetto.dev. Written when the run ends."""
METRICS = "metrics.jsonl"
"""One object a completed step: the metrics, with `step` and `version`."""
LEDGER = "ledger.jsonl"
"""One object an event of a group; issued = trained + dropped + pending, or something was lost."""
EVENTS = "events.jsonl"
"""One object a thing that happened to the run, with its time: resumed, another machine, how it ended."""
EVALS = "eval/results.jsonl"
"""One object an evaluation of a data set."""
LOGS = (METRICS, LEDGER, EVENTS, EVALS)


def samples_path(run: Path, step: int) -> Path:
    """The samples that step `step` trained on."""
    return run / "samples" / f"step-{step}" / "groups.parquet"


def greedy_path(run: Path, step: int) -> Path:
    """The greedy replies that these were compared with, where the algorithm does so."""
    return run / "samples" / f"step-{step}" / "greedy.parquet"


def eval_path(run: Path, dataset: str, step: int) -> Path:
    """The samples of an evaluation after `step` completed steps."""
    return run / "eval" / dataset / f"step-{step}.parquet"


def checkpoint_path(run: Path, step: int) -> Path:
    """The checkpoint after `step` completed steps."""
    return run / "checkpoints" / f"step-{step}"


def check_is_run(run: Path, *, what: str, way_out: str) -> None:
    """ConfigError unless `run` is a run of this format; `what` opens its line, `way_out` ends it."""
    if not run.exists():
        raise ConfigError(f"{what} does not exist; {way_out}")
    if not (run / RUN).is_file():
        raise ConfigError(f"{what} is not a run directory: it has no {RUN}; {way_out}")
    found = read_json(run / RUN)["format"]
    if found != FORMAT:
        raise ConfigError(
            f"{what} is a run directory of format {found}, expected {FORMAT}; use the strop that wrote it"
        )


def read_summary(run: Path) -> dict[str, Any] | None:
    """How the run ended; None while it runs or when it was killed."""
    path = run / SUMMARY
    return read_json(path) if path.exists() else None


def finished_steps(run: Path) -> int | None:
    """Steps of a run that finished; None for one that did not."""
    summary = read_summary(run)
    return summary["steps"] if summary is not None and summary["status"] == "finished" else None
