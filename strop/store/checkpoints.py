"""Checkpoints: written aside, flushed, renamed, so that a kill at any moment leaves the one before usable.

`checkpoints/step-N/` holds the state after N completed steps. Its `manifest.json` is written last and names
every file with its size and SHA-256, the offsets of the run's logs, and the run's own state.
"""

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strop.errors import DataError, RunError
from strop.store.durable import flush, flush_tree, writing
from strop.store.json_text import encode_exact, read_json
from strop.store.records import check_format

FORMAT = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One whole checkpoint, as its manifest tells it."""

    path: Path
    step: int
    """Completed steps."""
    state: dict[str, Any]
    """What the run gave; JSON values."""
    offsets: dict[str, int]
    """Log (relative to the run directory) → bytes at that moment."""
    files: dict[str, dict[str, Any]]
    """Relative path → `size` in bytes and `sha256`."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a run's checkpoints look like from the newest back to the first sound one."""

    newest: Checkpoint | None
    """The newest sound one."""
    damaged: list[str]
    """One line for each newer one that is not."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What a checkpoint records beside the files: the run's state and where its logs stood."""

    state: dict[str, Any]
    offsets: dict[str, int]


def write_checkpoint(
    run_dir: Path, step: int, *, fill: Callable[[Path], None], cut: Cut, keep: int
) -> Checkpoint:
    """Write `checkpoints/step-<step>`; returns when it would survive a power cut and older ones beyond
    `keep` are gone.

    `fill` writes the files into an empty directory. Blocks for as long as the disk takes: call it in a
    thread. A checkpoint of that step that is already there is kept: there is one state after N steps. Raises
    RunError, and leaves nothing half-written, when the disk refuses.
    """
    final = run_dir / "checkpoints" / f"step-{step}"
    with writing(final):
        if not final.exists():
            _make(final, step, fill, cut)
        written = read_checkpoint(final)
        for path in _steps(run_dir)[keep:]:
            _remove(path)
    return written


def _make(final: Path, step: int, fill: Callable[[Path], None], cut: Cut) -> None:
    aside = final.with_name(f".{final.name}.tmp")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        aside.mkdir(parents=True)
        fill(aside)
        _seal(aside, step, cut)
    except (OSError, RunError):
        shutil.rmtree(aside, ignore_errors=True)  # on a full disk, what is said of it needs the room
        raise
    aside.rename(final)
    flush(final.parent)


def latest_checkpoint(run_dir: Path) -> Checkpoint | None:
    """The newest whose files are all there in their sizes; None when there is none. See `verify`."""
    return survey(run_dir).newest


def survey(run_dir: Path) -> Survey:
    """Look from the newest checkpoint back to the first sound one."""
    damaged: list[str] = []
    for path in _steps(run_dir):
        try:
            return Survey(read_checkpoint(path), damaged)
        except RunError as error:
            damaged.append(str(error))
    return Survey(None, damaged)


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint at `path`, sizes checked. RunError names the file that is missing or differs; DataError
    for a format of another strop."""
    try:
        manifest = read_json(path / MANIFEST)
    except DataError as caught:
        raise RunError(str(caught)) from caught
    check_format(manifest["format"], str(path / MANIFEST))
    for name, file in manifest["files"].items():
        size = (path / name).stat().st_size if (path / name).is_file() else None
        if size != file["size"]:
            found = "is missing" if size is None else f"holds {size} bytes"
            raise RunError(f"{path / name}: {found}, its manifest says {file['size']}")
    return Checkpoint(path, manifest["step"], manifest["state"], manifest["offsets"], manifest["files"])


def verify(checkpoint: Checkpoint) -> None:
    """Read every file and compare its SHA-256 with the manifest's; RunError names the one that differs."""
    for name, file in checkpoint.files.items():
        found = _sha256(checkpoint.path / name)
        if found != file["sha256"]:
            raise RunError(
                f"{checkpoint.path / name}: has SHA-256 {found[:12]}…, its manifest says "
                f"{file['sha256'][:12]}…; the file was changed or damaged: delete {checkpoint.path} to go on "
                f"from an older checkpoint"
            )


def remove_after(run_dir: Path, step: int) -> None:
    """Delete checkpoints of later steps, and what a kill left half-written or half-deleted."""
    for path in _steps(run_dir):
        if step_of(path) > step:
            _remove(path)
    for path in (run_dir / "checkpoints").glob(".step-*.tmp"):
        shutil.rmtree(path)


def numbered(directory: Path) -> list[Path]:
    """What is called `step-N` or `step-N.parquet` in `directory`, in the order of N."""
    return sorted((path for path in directory.glob("step-*") if path.stem[5:].isdigit()), key=step_of)


def step_of(path: Path) -> int:
    """N of `step-N` or `step-N.parquet`."""
    return int(path.stem.removeprefix("step-"))


def _seal(directory: Path, step: int, cut: Cut) -> None:
    files = {
        str(path.relative_to(directory)): {"size": path.stat().st_size, "sha256": _sha256(path)}
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path != directory / MANIFEST  # it cannot hold its own checksum
    }
    manifest = {"format": FORMAT, "step": step, "files": files, "offsets": cut.offsets, "state": cut.state}
    text = encode_exact(manifest, f"the checkpoint of step {step}")
    flush_tree(directory)
    (directory / MANIFEST).write_text(text + "\n", encoding="utf-8")
    flush(directory / MANIFEST)
    flush(directory)


def _steps(run_dir: Path) -> list[Path]:
    """Checkpoint directories, newest first; a copy that a person made beside them is none of ours."""
    return numbered(run_dir / "checkpoints")[::-1]


def _remove(path: Path) -> None:
    # Renamed first: a kill half-way through must not leave something that looks like a checkpoint.
    aside = path.with_name(f".{path.name}.tmp")
    shutil.rmtree(aside, ignore_errors=True)
    path.rename(aside)
    shutil.rmtree(aside)


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as caught:
        raise RunError(f"{path}: cannot be read: {caught.strerror}") from caught
