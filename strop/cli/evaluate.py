"""`strop eval RUN|MODEL|RUN.toml`: held-out sets on a model that is there."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from strop.cli.arguments import Arguments, take_own, whole_number
from strop.cli.eval_target import Target, open_target
from strop.config.flags import split_arguments
from strop.config.offline_rules import is_offline
from strop.config.show import to_json
from strop.errors import ConfigError

if TYPE_CHECKING:
    from strop.eval.evaluate import Evaluation
    from strop.eval.results import Results

USAGE = """strop eval RUN [--step N] [--section.key value …]
strop eval MODEL --eval-prompt-data NAME PATH … [--section.key value …]
strop eval RUN.toml [--model DIR] [--section.key value …]

RUN is a run directory: its last checkpoint, or that of --step N, on its own eval.datasets; flags override
what the run was given. MODEL is a directory, or a name such as smollm2-135m.
--out DIR   keep results.jsonl and the samples in a new directory
--json      one JSON object a data set, instead of the table"""

_FLAGS = ("--step", "--out")
_SWITCHES = ("--json",)


def main(argv: list[str]) -> int:
    """Evaluate; the table or JSON goes to standard output, progress to standard error."""
    if not argv or "--help" in argv or "-h" in argv:
        print(USAGE)
        return 0
    own, rest = take_own(argv, "strop eval", flags=_FLAGS, switches=_SWITCHES)
    names, flags = split_arguments(rest)
    step = own.one("--step")
    number = None if step is None else whole_number("--step", step, least=0)
    target = open_target(names, flags, step=number, own=(*_FLAGS, *_SWITCHES))
    if is_offline(target.loaded.config):
        raise ConfigError(
            f"strop eval plays prompts, but {names[0]} trains on rows (algo.type = "
            f'"{target.loaded.config.algo.type}"): its held-out figures are in the eval/results.jsonl of the '
            "run; to play prompts, name a checkpoint: strop eval RUN/checkpoints/step-N --eval-prompt-data "
            "NAME PATH"
        )
    if not target.loaded.config.eval.datasets:
        raise ConfigError(
            "eval.datasets is empty: there is nothing to evaluate; add an [[eval.datasets]] table, or "
            "--eval-prompt-data NAME PATH"
        )
    _print(_evaluated(target, own), as_json="--json" in own.switches)
    return 0


def _evaluated(target: Target, own: Arguments) -> list[dict[str, Any]]:
    from strop.eval.results import Results, refuse_existing

    out = own.one("--out")
    if out is not None:
        refuse_existing(Path(out))
    from strop.preflight import prepare

    prepared = prepare(target.loaded.config)
    results = None if out is None else Results(Path(out), to_json(target.loaded))
    from strop.eval.alone import evaluate_alone

    watch = _Watch(target, results, sys.stderr)
    try:
        asyncio.run(evaluate_alone(prepared, watch))
    finally:
        watch.close()
    return watch.records


class _Watch:
    """Shows progress and keeps results; a `strop.eval.alone.Watch`."""

    def __init__(self, target: Target, results: "Results | None", file: TextIO) -> None:
        self.records: list[dict[str, Any]] = []
        self._target, self._results, self._file = target, results, file
        self._is_live = file.isatty()

    def progress(self, name: str, done: int, of: int) -> None:
        if self._is_live:
            self._file.write(f"\r\x1b[2K{name} {done}/{of} prompts")
            self._file.flush()

    def finished(self, result: "Evaluation", seconds: float) -> None:
        record = {
            "dataset": result.name,
            "model": self._target.loaded.config.model,
            "step": self._target.step,
            **result.as_json(),
            "time/eval_s": seconds,
        }
        self.records.append(record)
        if self._results is not None:
            self._results.add(result, record)
        self._clear()
        print(f"{result.name}: {len(result.groups)} prompts in {seconds:.1f} s", file=self._file)
        errors = [s.error for group in result.groups for s in group.samples if s.error]
        if errors:
            print(f"{result.name}: {result.failed} failed; the first: {errors[0]}", file=self._file)

    def close(self) -> None:
        self._clear()
        if self._results is not None:
            self._results.close()

    def _clear(self) -> None:
        if self._is_live:
            self._file.write("\r\x1b[2K")
            self._file.flush()


def _print(records: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        for record in records:
            print(json.dumps(record, ensure_ascii=False))
        return
    from strop.cli.eval_table import remarks, results_table
    from strop.telemetry.terminal import is_coloured, open_terminal

    out = open_terminal(sys.stdout, plain=not is_coloured(sys.stdout, os.environ))
    out.print(results_table(records))
    for line in remarks(records):
        out.print(line, style="dim", soft_wrap=True)
