"""What the tests ask of a run directory."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from strop.cli.main import main
from strop.store.ledger import Balance, audit
from strop.store.reader import RunReader


def steps_recorded(run: Path) -> list[int]:
    """The steps in `metrics.jsonl`, as they stand there."""
    return [record["step"] for record in RunReader(run).metrics()]


def checkpoints(run: Path) -> list[str]:
    """What lies in `checkpoints/`, half-written things included."""
    return sorted(path.name for path in (run / "checkpoints").iterdir())


def is_unfinished(run: Path) -> bool:
    return not (run / "summary.json").exists()


def summary(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "summary.json").read_text())
    return found


def books(run: Path) -> Balance:
    """The ledger, audited."""
    return audit(RunReader(run).ledger())


def content(directory: Path) -> dict[str, tuple[str, int]]:
    """Every file and link below, with a digest and the time of its last change."""
    return {
        str(path.relative_to(directory)): (
            hashlib.sha256(path.read_bytes() if path.is_file() else b"").hexdigest(),
            path.lstat().st_mtime_ns,
        )
        for path in sorted(directory.rglob("*"))
    }


def first_difference(a: Path, b: Path, capsys: pytest.CaptureFixture[str]) -> str | None:
    """What `strop compare A B --exact` says; None if it says that they are equal."""
    capsys.readouterr()
    code = main(["compare", str(a), str(b), "--exact"])
    said = capsys.readouterr().out.strip()
    return None if code == 0 else said
