"""`RunReader`: what a run directory says, while the run is live, after it ended, and after it crashed."""

from pathlib import Path
from typing import Any

from strop.errors import ConfigError
from strop.sample import Sample
from strop.store import layout
from strop.store.checkpoints import Checkpoint, latest_checkpoint, numbered, step_of
from strop.store.json_text import read_json
from strop.store.jsonl import read_log
from strop.store.ledger import Entry, read_ledger
from strop.store.samples import Advantages, read_advantages, read_samples


class RunReader:
    """Reads one run directory and writes nothing. ConfigError when `path` is not one."""

    def __init__(self, path: Path) -> None:
        layout.check_is_run(path, what=str(path), way_out="name the directory of a run, e.g. runs/latest")
        self.path = path

    def about(self) -> dict[str, Any]:
        """`run.json`: format, strop, pid, started."""
        return read_json(self.path / layout.RUN)

    def config(self) -> dict[str, Any]:
        """`config.json`, as the run wrote it."""
        return read_json(self.path / layout.CONFIG)

    def summary(self) -> dict[str, Any] | None:
        """How the run ended; None while it runs or when it was killed."""
        return layout.read_summary(self.path)

    def metrics(self) -> list[dict[str, Any]]:
        """One record a completed step, in order; a value that was not finite is None."""
        return read_log(self.path / layout.METRICS)

    def evals(self) -> list[dict[str, Any]]:
        """One record an evaluation: `dataset, step, mean, n, …`."""
        return read_log(self.path / layout.EVALS)

    def events(self) -> list[dict[str, Any]]:
        """What happened, and when."""
        return read_log(self.path / layout.EVENTS)

    def ledger(self) -> list[Entry]:
        """What became of every group."""
        return read_ledger(self.path / layout.LEDGER)

    def sample_steps(self) -> list[int]:
        """Steps whose samples are stored, rising."""
        steps = (step_of(path) for path in numbered(self.path / "samples"))
        return [step for step in steps if layout.samples_path(self.path, step).exists()]

    def samples(self, step: int) -> list[Sample]:
        """The samples that step `step` trained on."""
        return read_samples(self._samples_path(step))

    def advantages(self, step: int) -> Advantages:
        """Their advantages, by sample index."""
        return read_advantages(self._samples_path(step))

    def eval_sets(self) -> list[str]:
        """Data sets with stored samples, in alphabetical order."""
        return sorted(
            path.name for path in (self.path / "eval").iterdir() if path.is_dir() and numbered(path)
        )

    def eval_steps(self, dataset: str) -> list[int]:
        """Completed steps at each stored evaluation of `dataset`, rising."""
        return [step_of(path) for path in numbered(self.path / "eval" / dataset)]

    def eval_samples(self, dataset: str, step: int) -> list[Sample]:
        """The samples of one evaluation."""
        return read_samples(layout.eval_path(self.path, dataset, step))

    def checkpoint(self) -> Checkpoint | None:
        """The newest sound checkpoint."""
        return latest_checkpoint(self.path)

    def greedy_samples(self, step: int) -> list[Sample]:
        """The greedy replies that these were compared with; none where the algorithm compares otherwise."""
        path = layout.greedy_path(self.path, step)
        return read_samples(path) if path.exists() else []

    def _samples_path(self, step: int) -> Path:
        path = layout.samples_path(self.path, step)
        if not path.exists():
            there = self.sample_steps()
            stored = f"{there[0]} to {there[-1]}" if there else "none yet"
            raise ConfigError(f"{self.path}: has no samples of step {step}; stored: {stored}")
        return path
