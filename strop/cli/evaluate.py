"""`strop eval RUN|RUN.toml [--model DIR] [--section.key value …]`"""

import asyncio
from pathlib import Path

from strop.config.flags import split_arguments
from strop.config.load import load_config
from strop.config.tree import Config
from strop.errors import ConfigError

USAGE = """strop eval RUN
strop eval RUN.toml [--model DIR] [--section.key value …]

RUN is a run directory: its own eval.datasets on its last checkpoint. Prints mean, standard error and n."""


def main(argv: list[str]) -> int:
    """Evaluate; prints one line a data set and writes nothing."""
    if not argv or "--help" in argv or "-h" in argv:
        print(USAGE)
        return 0
    config = _config(argv)
    if not config.eval.datasets:
        raise ConfigError(
            "eval.datasets is empty: there is nothing to evaluate; add an [[eval.datasets]] table"
        )
    from strop.preflight import prepare

    prepared = prepare(config)
    from strop.eval.alone import evaluate_alone

    for result in asyncio.run(evaluate_alone(prepared)):
        failed = f", {result.failed} samples failed" if result.failed else ""
        print(f"{result.name}: mean {result.mean:.4f} ± {result.stderr:.4f}, n = {result.n}{failed}")
    return 0


def _config(argv: list[str]) -> Config:
    """A run directory's own configuration with its last checkpoint as the model, or a run file's."""
    files, flags = split_arguments(argv)
    if len(files) == 1 and files[0].is_dir():
        if flags:
            raise ConfigError(
                f"strop eval {files[0]}: takes no flags, got {flags[0]}; give its run file instead"
            )
        return _of_run(files[0])
    return load_config(files, flags).config


def _of_run(run: Path) -> Config:
    from strop.config.show import from_json
    from strop.store.reader import RunReader

    reader = RunReader(run)
    checkpoint = reader.checkpoint()
    if checkpoint is None:
        raise ConfigError(f"{run} has no checkpoint yet: there is no model to evaluate")
    config = from_json(reader.config()).config
    return config.model_copy(update={"model": str(checkpoint.path)})
