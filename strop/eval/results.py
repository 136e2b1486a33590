"""`Results`: the directory that `strop eval --out` writes: `config.json`, `results.jsonl`, `<name>.parquet`.

Each data set is written when it is done, its samples before its line: after a crash, what is there is whole.
"""

from pathlib import Path
from typing import Any

from strop.errors import ConfigError
from strop.eval.evaluate import Evaluation
from strop.store.durable import write_json
from strop.store.jsonl import Log
from strop.store.samples import write_samples


class Results:
    """A new directory. Raises RunError when the disk refuses."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        """`config`: for config.json. ConfigError when `path` is there already or cannot be made."""
        refuse_existing(path)
        try:
            path.mkdir(parents=True)
        except OSError as caught:
            raise ConfigError(f"--out {path} cannot be made: {caught.strerror}; choose another") from caught
        write_json(path / "config.json", config)
        self._path, self._log = path, Log(path / "results.jsonl")

    def add(self, result: Evaluation, record: dict[str, Any]) -> None:
        """The samples of a data set, then its line."""
        write_samples(self._path / f"{result.name}.parquet", result.groups)
        self._log.append(record)
        self._log.sync()

    def close(self) -> None:
        self._log.close()


def refuse_existing(path: Path) -> None:
    """ConfigError when results cannot go to `path` because something is there."""
    if path.exists() or path.is_symlink():
        raise ConfigError(f"--out {path} already exists; choose another directory")
