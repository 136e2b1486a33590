"""`TensorBoard`: the chart that writes event files to `<run>/tensorboard` (`tensorboard --logdir runs`)."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from strop.store.durable import writing
from strop.store.jsonl import read_log
from strop.store.layout import EVALS
from strop.telemetry.scalars import eval_scalars


class TensorBoard:
    """Each process of a run has a file of its own, unbuffered: what is shown is what happened, also after a
    crash. Raises RunError when the disk refuses."""

    def __init__(self, run: Path, first_step: int) -> None:
        """A run that goes on says where, so that what a killed process wrote beyond its last checkpoint
        disappears. The evaluation after that very step disappears too, and is written once more."""
        began = time.time_ns()
        self._path = run / "tensorboard" / f"events.out.tfevents.{began // 10**9}.{began}.{os.getpid()}"
        with writing(self._path):
            self._path.parent.mkdir(exist_ok=True)
            self._file = self._path.open("ab", buffering=0)
        self._records = RecordWriter(self._file)
        self._event(file_version="brain.Event:2")
        if first_step:
            self._event(step=first_step, session_log=SessionLog(status=SessionLog.START))
            for record in read_log(run / EVALS):
                if record["step"] == first_step:
                    self.write(first_step, eval_scalars(record))

    def write(self, step: int, values: Mapping[str, float]) -> None:
        tagged = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._event(step=step, summary=Summary(value=tagged))

    def close(self, *, ok: bool) -> None:  # noqa: ARG002 - event files do not say how a run ended
        self._file.close()

    def _event(self, **fields: Any) -> None:
        with writing(self._path):
            self._records.write(Event(wall_time=time.time(), **fields).SerializeToString())
