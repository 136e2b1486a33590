"""A configuration as rules see it: values by dotted key, each with its origin, in the words of a message."""

from dataclasses import dataclass
from typing import Any

from strop.config.keys import Section
from strop.config.presets import is_given
from strop.config.toml_text import shown
from strop.config.tree import Config


@dataclass(frozen=True)
class View:
    """A config whose keys can say where they come from."""

    config: Config
    origins: dict[str, str]

    def value(self, key: str) -> Any:
        found: Any = self.config
        for part in key.split("."):
            found = found[int(part)] if part.isdecimal() else _field(found, part)
        return found

    def origin(self, key: str) -> str:
        """Of the key, or of the first thing inside its table."""
        below = (origin for path, origin in self.origins.items() if path.startswith(f"{key}."))
        return self.origins.get(key) or next(below)

    def said(self, key: str) -> str:
        """`rollout.batch_size = 8 (run.toml:7)`"""
        return f"{key} = {shown(self.value(key))} ({self.origin(key)})"

    def at(self, *keys: str) -> str:
        """The place to look first: of the first of `keys` that was given."""
        given = [origin for origin in map(self.origin, keys) if is_given(origin)]
        return given[0] if given else keys[0]


def _field(section: Section, name: str) -> Any:
    return section.__dict__[name]
