"""Where a process kills itself as `kill -9` would: set up in the child before the command, nowhere else."""

import os
import signal
from collections.abc import Callable
from typing import Any

from strop.store import checkpoints
from strop.store.jsonl import Log
from strop.train.optimizer import Optimizer


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def in_training(update: int) -> None:
    """Once optimizer update `update`, counted from 0, has changed the weights."""
    real = Optimizer.step

    def step(self: Optimizer) -> None:
        real(self)
        if self.updates == update + 1:
            _die()

    Optimizer.step = step  # type: ignore[method-assign]


def in_checkpoint(step: int) -> None:
    """When the files of a checkpoint are written aside, and nothing says yet that they are whole."""
    _die_in("_seal", lambda _path, of_step, _cut: of_step == step)


def after_checkpoint(step: int) -> None:
    """When a checkpoint is in place and the one before it is about to be deleted."""
    _die_in("_remove", lambda path: path.with_name(f"step-{step}").exists())


def before_metrics(step: int) -> None:
    """When a step is in the ledger and its samples are stored, and its record is not written."""
    real = Log.append

    def append(self: Log, record: dict[str, Any]) -> None:
        if self.path.name == "metrics.jsonl" and record["step"] == step:
            _die()
        real(self, record)

    Log.append = append  # type: ignore[method-assign]


def after_eval(step: int) -> None:
    """Between two data sets of an evaluation, whose first record is written."""
    real = Log.append

    def append(self: Log, record: dict[str, Any]) -> None:
        real(self, record)
        if self.path.name == "results.jsonl" and record["step"] == step:
            _die()

    Log.append = append  # type: ignore[method-assign]


def _die_in(name: str, is_the_moment: Callable[..., bool]) -> None:
    real = vars(checkpoints)[name]

    def dying(*args: Any) -> None:
        if is_the_moment(*args):
            _die()
        real(*args)

    vars(checkpoints)[name] = dying
