"""Files and flags → one checked, frozen `Config`, with the origin of every value."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from strop.config import rules
from strop.config.complaints import complaints
from strop.config.files import read_file
from strop.config.flags import apply_flags
from strop.config.presets import apply_preset
from strop.config.schema import leaf_paths
from strop.config.settings import Problems, Settings
from strop.config.toml_text import dotted
from strop.config.tree import Config


@dataclass(frozen=True)
class Loaded:
    """A run's configuration, complete: every file it names is absolute, `train.batch_size` is set."""

    config: Config
    origins: dict[str, str]
    """Dotted key → `run.toml:14`, `--loop.steps`, `default`, `algo.type = dapo` or `batch identity`, for
    every key."""


def load_config(files: Sequence[Path], flags: Sequence[str] = (), *, also: Iterable[str] = ()) -> Loaded:
    """The configuration that `files`, later over earlier, and then `flags` give.

    `also`: flags of the command itself, only suggested when an unknown flag looks like one. Raises
    `ConfigError` with one line: the first thing wrong, and how many more there are. Reads the run files and
    nothing that they name.

        load_config([Path("run.toml")], ["--loop.steps", "3"]).config.loop.steps  # 3
    """
    settings, problems = Settings(), Problems()
    for layer, file in enumerate(files):
        settings.take(read_file(Path(file), layer), problems)
    apply_flags(flags, settings, problems, also=also)
    return finished(settings, problems, last=str(files[-1]) if files else "command line")


def finished(settings: Settings, problems: Problems, *, last: str) -> Loaded:
    """What settings come to; `last` is the place of what is missing. Raises `ConfigError`."""
    apply_preset(settings)
    config = _validated(settings, problems, last=last)
    origins = _origins(config, settings)
    rules.check(config, origins)
    if config.train.batch_size is None:
        origins["train.batch_size"] = "batch identity"
    return Loaded(rules.with_batch_size(config), origins)


def _validated(settings: Settings, problems: Problems, *, last: str) -> Config:
    """Raises `ConfigError` when there is a problem, with the values or before."""
    try:
        config = Config.model_validate(settings.nested())
    except ValidationError as error:
        # A misspelt key is why its right spelling is missing: one of the two is enough.
        problems.found += complaints(error, settings, last, missing=not problems.found)
        raise problems.first() from None
    if problems.found:
        raise problems.first()
    return config


def _origins(config: Config, settings: Settings) -> dict[str, str]:
    origins: dict[str, str] = {}
    for path, _ in leaf_paths(config):
        given = settings.under(path)
        origins |= {dotted(put.path): put.place.origin for put in given} or {dotted(path): "default"}
    return origins
