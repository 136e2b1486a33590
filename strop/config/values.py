"""A configuration from values instead of files, with flags over them: that of a run, once more."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from strop.config.flags import apply_flags
from strop.config.flatten import Source, flatten_section
from strop.config.load import Loaded, finished
from strop.config.presets import is_given
from strop.config.schema import KeyPath
from strop.config.settings import Place, Problem, Problems, Put, Settings
from strop.config.toml_text import dotted
from strop.config.tree import Config


def load_values(
    values: Mapping[str, Any], origins: Mapping[str, str], flags: Sequence[str], *, also: Iterable[str] = ()
) -> Loaded:
    """The configuration of nested `values` with flags over them; `origins` are those of dotted keys, and stay
    where no flag overrides. Raises `ConfigError` as `load_config` does."""
    settings, problems = Settings(), Problems()
    settings.take(_given(values, origins), problems)
    apply_flags(flags, settings, problems, also=also)
    return finished(settings, problems, last="command line")


def _given(values: Mapping[str, Any], origins: Mapping[str, str]) -> Iterator[Put | Problem]:
    def place(path: KeyPath) -> Place:
        return Place(origins.get(dotted(path), "config.json"), (-1, 0))

    for item in flatten_section(Config, dict(values), (), Source(base=Path.cwd(), place=place)):
        if is_given(item.place.origin):  # the others follow from these again
            yield item
