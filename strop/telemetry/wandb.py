"""`WandB`: the chart for Weights & Biases, offline unless told; its files are in `<run>/wandb`.

Offline files go to the server by `wandb sync RUN/wandb/offline-run-*`. A run that was resumed has several,
which are one run there (`--append`).
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import wandb

from strop.config.tree import Config
from strop.store.json_text import read_json
from strop.store.layout import RUN


class WandB:
    """Nothing but numbers and the configuration is sent: no code, no output, no samples."""

    def __init__(self, run: Path, config: Config) -> None:
        quiet = wandb.Settings(console="off", silent=True, disable_git=True, disable_code=True)
        self._run = wandb.init(**arguments(run, config), settings=quiet)
        self._run.define_metric("step", hidden=True)
        # Not W&B's own counter, which refuses to go back: a resumed run repeats steps of a killed process.
        self._run.define_metric("*", step_metric="step")

    def write(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log({"step": step, **values})

    def close(self, *, ok: bool) -> None:
        self._run.finish(exit_code=0 if ok else 1)


def has_key() -> bool:
    """Whether W&B knows an API key; without one, `wandb.init` would ask for it and wait."""
    return wandb.login(prompt=False, verify=False)


def arguments(run: Path, config: Config) -> dict[str, Any]:
    """For `wandb.init`. The id is a function of the run's name and beginning: a resumed run is the same one
    there, another run of that name is not."""
    begun = hashlib.sha256(f"{config.name} {read_json(run / RUN)['started']}".encode()).hexdigest()
    section = config.telemetry.wandb
    return {
        "project": section.project,
        "group": section.group,
        "entity": section.entity,
        "mode": section.mode,
        "dir": str(run),
        "id": f"{config.name[:64]}-{begun[:12]}",
        "name": config.name,
        "resume": "allow",
        "config": config.model_dump(mode="json"),
    }
