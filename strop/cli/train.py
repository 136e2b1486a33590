"""`strop train RUN.toml [MORE.toml] [--section.key value …] [--resume]`"""

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strop.cli.closing import closing_lines
from strop.cli.teacher_first import train_teacher
from strop.config.flags import split_arguments
from strop.config.load import Loaded, load_config
from strop.config.show import to_json
from strop.config.tree import Config
from strop.errors import ConfigError, RunError
from strop.telemetry.base import Sink
from strop.telemetry.open import check_sinks, open_sinks

if TYPE_CHECKING:
    from strop.preflight import Prepared
    from strop.run import Run
    from strop.store.run_dir import RunDirectory

USAGE = """strop train RUN.toml [MORE.toml …] [--section.key value …] [--resume]

Later files win over earlier ones, flags over files. --resume goes on with the run in --store.dir from its
last checkpoint. All keys: strop config --keys"""


def main(argv: Sequence[str], *, waiting: Sequence[Path] = ()) -> int:
    """Train; returns the exit code. `waiting`: directories of the runs whose teacher this is to be."""
    if not argv or "--help" in argv or "-h" in argv:
        print(USAGE)
        return 0
    files, flags = split_arguments([argument for argument in argv if argument != "--resume"])
    resumes = "--resume" in argv
    loaded = load_config(files, flags, also=("--resume",))
    directory = _directory(loaded.config, resumes=resumes)
    if resumes and not _goes_on(directory, loaded):
        print(f"{directory} is finished: nothing to resume")
        return 0
    waiting = (*waiting, *([] if directory is None else [directory.absolute()]))
    code = train_teacher(
        loaded.config,
        partial(main, waiting=waiting),
        check=lambda config: _prepare(config, {}),
        waiting=waiting,
    )
    if code:
        return code
    prepared, record = _prepare(loaded.config, to_json(loaded))
    if resumes:
        _check_prompts(directory, prepared)
    return _run(prepared, record, directory, resumes=resumes)


def _directory(config: Config, *, resumes: bool) -> Path | None:
    """Refuse a wrong directory before anything is loaded."""
    from strop.store.layout import check_is_run
    from strop.store.run_dir import refuse_existing

    if config.store.dir is None:
        if resumes:
            raise ConfigError("--resume needs --store.dir, the directory of the run to continue")
        return None
    path = Path(config.store.dir)
    if resumes:
        way_out = "leave --resume out to begin a run, or name the directory of one"
        check_is_run(path, what=f'store.dir = "{path}"', way_out=way_out)
    else:
        refuse_existing(path)
    return path


def _goes_on(directory: Path | None, loaded: Loaded) -> bool:
    """Whether there is anything left of a run that may be continued with these settings."""
    from strop.cli.resumed import refuse_changes
    from strop.store.layout import finished_steps

    assert directory is not None
    refuse_changes(directory, loaded)
    done = finished_steps(directory)
    return done is None or done < loaded.config.loop.steps


def _check_prompts(directory: Path | None, prepared: "Prepared") -> None:
    from strop.cli.resumed import refuse_other_prompts

    assert directory is not None
    refuse_other_prompts(directory, prepared.source)


def _prepare(config: Config, record: dict[str, Any]) -> "tuple[Prepared, dict[str, Any]]":
    check_sinks(config.telemetry)
    from strop.preflight import prepare
    from strop.runtime.machine import Machine

    prepared = prepare(config)
    machine = Machine.here()
    return prepared, {**record, "plan": prepared.plan.as_json(), "machine": machine.as_json()}


def _run(prepared: "Prepared", record: dict[str, Any], directory: Path | None, *, resumes: bool) -> int:
    from strop.cli.resumed import machine_changes, machine_note
    from strop.store.json_text import read_json
    from strop.store.layout import CONFIG
    from strop.store.run_dir import RunDirectory

    changes: dict[str, list[Any]] = {}
    if resumes:
        assert directory is not None
        changes = machine_changes(read_json(directory / CONFIG), record)
        opened = RunDirectory.resume(directory, config=record)
    else:
        opened = RunDirectory.create(directory, prepared.config.name, config=record)
    with opened as run_directory:
        sink = open_sinks(
            prepared.config,
            run_directory.path,
            lambda name, why: run_directory.event("sink_failed", sink=name, why=why),
        )
        try:
            if changes:
                run_directory.event("machine_changed", changes=changes)
                sink.note(machine_note(changes))
            return _train(prepared, run_directory, sink)
        except BaseException:
            sink.end(ok=False)
            raise
        finally:
            sink.end()


def _train(prepared: "Prepared", directory: "RunDirectory", sink: Sink) -> int:
    # needs torch, and comes when everything that could be wrong has been looked at
    from strop.run import Run

    sink.status("loading the model")
    run = Run(prepared, directory, sink)
    try:
        asyncio.run(_until_done(run, sink))
    except (asyncio.CancelledError, KeyboardInterrupt):
        with suppress(RunError):
            _close(run, directory, "interrupted")
        raise KeyboardInterrupt from None
    except BaseException:
        with suppress(RunError):  # the first error is the one to tell; a disk that refuses, refuses twice
            _close(run, directory, "failed")
        raise
    status = "finished" if run.interrupted_after is None else "interrupted"
    summary = _close(run, directory, status)
    sink.end()
    if (
        status == "finished"
        and run.completed
        and summary["eval"]
        and "console" in prepared.config.telemetry.sinks
    ):
        _show_before_and_after(directory.path, next(iter(summary["eval"])))
    sink.end(closing_lines(directory.path, summary))
    return 0 if status == "finished" else 130


def _close(run: "Run", directory: "RunDirectory", status: str) -> dict[str, Any]:
    """Record how the run ended; returns its summary."""
    summary = run.summary(status, run.completed)
    try:
        directory.write_summary(summary)
        directory.event(status, step=run.completed)
    finally:
        run.close()
    return summary


def _show_before_and_after(path: Path, dataset: str) -> None:
    from strop.cli import show

    print("\nheld-out prompts before and after:\n")
    show.main([str(path), "--eval", dataset, "--n", "2"])
    print()


async def _until_done(run: "Run", sink: Sink) -> None:
    from strop.loop import train

    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGINT, _on_interrupt(run, sink, task))
    await train(run)


def _on_interrupt(run: "Run", sink: Sink, task: "asyncio.Task[Any]") -> Callable[[], None]:
    """The first Ctrl-C ends the run after its step, with a checkpoint; the second ends it at once."""
    asked = False

    def handle() -> None:
        nonlocal asked
        if asked:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            task.cancel("interrupted")
            return
        asked = True
        run.interrupt()
        sink.note("stopping after this step, with a checkpoint; press Ctrl-C again to stop at once")

    return handle
