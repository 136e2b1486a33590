"""`RunDirectory`: the directory of the one run that writes it. Readers use `store/reader.py`."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from strop import __version__
from strop.errors import ConfigError, RunError
from strop.store import layout
from strop.store.checkpoints import (
    Checkpoint,
    Cut,
    Survey,
    numbered,
    remove_after,
    step_of,
    survey,
    verify,
    write_checkpoint,
)
from strop.store.durable import flush, write_json, writing
from strop.store.jsonl import Log
from strop.store.ledger import Ledger
from strop.store.lock import drop_lock, take_lock


class RunDirectory:
    """An open run directory; this process is its only writer until `close`.

    Made by `create` or `resume`. `checkpoint` is what a resumed run goes on from, None for a run at its
    beginning. Whatever writes raises RunError, which names the file, when the disk refuses.
    """

    def __init__(self, path: Path, checkpoint: Checkpoint | None) -> None:
        self.path = path
        self.checkpoint = checkpoint
        self._logs = {name: Log(path / name) for name in layout.LOGS}
        self.metrics = self._logs[layout.METRICS]
        self.events = self._logs[layout.EVENTS]
        self.evals = self._logs[layout.EVALS]
        self.ledger = Ledger(self._logs[layout.LEDGER])

    @classmethod
    def create(
        cls, directory: Path | None, name: str, *, config: dict[str, Any], base: Path = Path("runs")
    ) -> Self:
        """A new run at `directory`, by default at `<base>/<name>-<time>` with `<base>/latest` pointing to it.

        Raises ConfigError, and leaves nothing behind, when the path exists or cannot be made.
        """
        started = datetime.now().astimezone()
        path = directory or _unused(base / f"{name}-{started:%Y%m%d-%H%M%S}")
        refuse_existing(path)
        latest = base / "latest"
        if directory is None and latest.exists() and not latest.is_symlink():
            raise ConfigError(f"{latest} is not a link to a run; move it away, or name a store.dir")
        aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            _fill(aside, config, started)
            aside.rename(path)
            flush(path.parent)
        except (OSError, RunError) as caught:
            shutil.rmtree(aside, ignore_errors=True)
            reason = caught.strerror if isinstance(caught, OSError) else str(caught)
            raise ConfigError(f'store.dir = "{path}" cannot be made: {reason}; choose another') from caught
        if directory is None:
            with writing(latest):
                _point(latest, path.name)
        return cls(path, None)

    @classmethod
    def resume(cls, path: Path, *, config: dict[str, Any]) -> Self:
        """Go on with the run at `path` from its newest checkpoint, or from nothing when it has none.

        Whatever came after the checkpoint is deleted: log lines, samples, evaluations, leftovers of a kill.
        Raises ConfigError when `path` is no run or another process writes it, RunError when a checkpoint's
        file or a log is not what the manifest says; then nothing is deleted.
        """
        way_out = "leave --resume out to begin a run, or name the directory of one"
        layout.check_is_run(path, what=f'store.dir = "{path}"', way_out=way_out)
        take_lock(path)
        try:
            found = survey(path)
            _check(found, path)
            with writing(path):
                _rewind(path, found.newest)
            run = cls(path, found.newest)
            run._cut(found.newest)
        except BaseException:
            drop_lock(path)
            raise
        write_json(path / layout.CONFIG, config)
        (path / layout.SUMMARY).unlink(missing_ok=True)
        step = 0 if found.newest is None else found.newest.step
        run.event("resumed", step=step, pid=os.getpid(), skipped_checkpoints=found.damaged)
        return run

    def event(self, kind: str, **facts: object) -> None:
        """Write what happened, and when, to `events.jsonl`."""
        self.events.append({"event": kind, "time": datetime.now().astimezone().isoformat(), **facts})

    def greedy_path(self, step: int) -> Path:
        """Where the greedy replies of a step go."""
        return _with_parent(layout.greedy_path(self.path, step))

    def samples_path(self, step: int) -> Path:
        """Where to write the samples that step `step` trained on; its directory exists."""
        return _with_parent(layout.samples_path(self.path, step))

    def eval_path(self, dataset: str, step: int) -> Path:
        """Where to write the samples of an evaluation after `step` completed steps; its directory exists."""
        return _with_parent(layout.eval_path(self.path, dataset, step))

    def offsets(self) -> dict[str, int]:
        """Where each log stands; blocks until everything before that is on the disk."""
        return {name: log.sync() for name, log in self._logs.items()}

    def write_checkpoint(
        self, step: int, *, fill: Callable[[Path], None], state: dict[str, Any], keep: int
    ) -> Checkpoint:
        """A checkpoint after `step` completed steps, with the logs as they stand; see `checkpoints.py`.

        Blocks: call it in a thread, while nobody appends to the logs.
        """
        cut = Cut(state, self.offsets())
        return write_checkpoint(self.path, step, fill=fill, cut=cut, keep=keep)

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Say how the run ended; `status` and `steps` are read by `--resume`."""
        write_json(self.path / layout.SUMMARY, summary)

    def close(self) -> None:
        """Close the logs and let others write the directory."""
        for log in self._logs.values():
            log.close()
        drop_lock(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        # What ended the run comes first: a disk that refuses then refuses once more.
        with suppress(*([] if error is None else [RunError])):
            self.close()

    def _cut(self, checkpoint: Checkpoint | None) -> None:
        for name, log in self._logs.items():
            log.truncate(0 if checkpoint is None else checkpoint.offsets[name])


def refuse_existing(path: Path) -> None:
    """ConfigError when a new run cannot go to `path` because something is there."""
    if path.exists() or path.is_symlink():
        raise ConfigError(
            f'store.dir = "{path}" already exists; choose another, or add --resume to continue it'
        )


def _fill(path: Path, config: dict[str, Any], started: datetime) -> None:
    for part in ("samples", "eval", "checkpoints"):
        (path / part).mkdir(parents=True)
    about = {
        "format": layout.FORMAT,
        "strop": __version__,
        "pid": os.getpid(),
        "started": started.isoformat(),
    }
    write_json(path / layout.RUN, about)
    write_json(path / layout.CONFIG, config)
    take_lock(path)


def _unused(path: Path) -> Path:
    """`path`, or the first of path-2, path-3, … when two runs begin within one second."""
    number = 1
    candidate = path
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


def _point(link: Path, target: str) -> None:
    aside = link.with_name(f".{link.name}.{os.getpid()}.tmp")
    aside.unlink(missing_ok=True)
    aside.symlink_to(target)
    aside.replace(link)


def _with_parent(path: Path) -> Path:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _check(found: Survey, path: Path) -> None:
    """RunError unless there is a sound checkpoint, its checksums hold and the logs reach its offsets, or
    there is no checkpoint at all."""
    if found.newest is None:
        if found.damaged:
            all_of_them = path / "checkpoints"
            raise RunError(
                f"{found.damaged[0]}; no sound checkpoint is left: delete {all_of_them} to start afresh"
            )
        return
    verify(found.newest)
    for name, offset in found.newest.offsets.items():
        size = (path / name).stat().st_size if (path / name).exists() else 0
        if size < offset:
            raise RunError(
                f"{path / name}: holds {size} bytes, the checkpoint of step {found.newest.step} was taken at "
                f"{offset}; lines were lost, so the run cannot be continued truthfully"
            )


def _rewind(path: Path, checkpoint: Checkpoint | None) -> None:
    """Delete what later steps left, and half-written files."""
    step = -1 if checkpoint is None else checkpoint.step
    remove_after(path, step)
    for samples in numbered(path / "samples"):
        if step_of(samples) >= step:
            shutil.rmtree(samples)
    for dataset in (entry for entry in (path / "eval").iterdir() if entry.is_dir()):
        for samples in numbered(dataset):
            if step_of(samples) > step:
                samples.unlink()
    for leftover in path.rglob(".*.tmp"):
        leftover.unlink()
