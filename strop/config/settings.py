"""What files and flags set, key by key, each with its place; later settings replace earlier ones."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from strop.config.schema import KeyPath, sections
from strop.errors import ConfigError


@dataclass(frozen=True)
class Place:
    """Where a value was given."""

    origin: str
    """`run.toml:14` or `--loop.steps`."""
    order: tuple[int, int]
    """(layer, line): earlier places sort first; flags are the last layer."""


@dataclass(frozen=True)
class Put:
    """One key set to one value."""

    path: KeyPath
    value: Any
    place: Place


@dataclass(frozen=True)
class Problem:
    """Something wrong: its place, and the message without the place."""

    place: Place
    text: str


@dataclass
class Problems:
    """Everything wrong that was found; reading goes on after the first, so that all are counted."""

    found: list[Problem] = field(default_factory=list)

    @contextmanager
    def caught_at(self, place: Place) -> Iterator[None]:
        """A `ConfigError` in the block is a problem of that place."""
        try:
            yield
        except ConfigError as error:
            self.found.append(Problem(place, str(error)))

    def first(self) -> ConfigError:
        """The first problem in the order of the files, with the number of the others."""
        first = min(self.found, key=lambda problem: problem.place.order)
        more = f" (and {len(self.found) - 1} more)" if len(self.found) > 1 else ""
        return ConfigError(f"{first.place.origin}: {first.text}{more}")


@dataclass
class Settings:
    """The leaves that were set. No path is the beginning of another one."""

    puts: dict[KeyPath, Put] = field(default_factory=dict)

    def take(self, given: Iterable[Put | Problem], problems: Problems) -> None:
        """Put every setting in order; problems go to `problems`."""
        for item in given:
            if isinstance(item, Put):
                self.put(item)
            else:
                problems.found.append(item)

    def put(self, put: Put) -> None:
        """Set one key; what it overlaps is replaced."""
        for path in [path for path in self.puts if overlap(path, put.path)]:
            del self.puts[path]
        self.puts[put.path] = put

    def under(self, path: KeyPath) -> list[Put]:
        """Every setting at `path` or below it."""
        return [put for place, put in self.puts.items() if place[: len(path)] == path]

    def get(self, path: KeyPath, default: Any) -> Any:
        """The value set for a key, or `default`."""
        return self.puts[path].value if path in self.puts else default

    def nested(self) -> dict[str, Any]:
        """The values as tables in tables; every section is there, so that what is missing is a key."""
        root: dict[Any, Any] = {}
        for path in sections():
            _table_at(root, path)
        for path, put in self.puts.items():
            _table_at(root, path[:-1])[path[-1]] = put.value
        return {name: _rows_as_lists(value) for name, value in root.items()}


def overlap(one: KeyPath, other: KeyPath) -> bool:
    """One path is the other, or leads to it."""
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def _table_at(root: dict[Any, Any], path: KeyPath) -> dict[Any, Any]:
    for part in path:
        root = root.setdefault(part, {})
    return root


def _rows_as_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(isinstance(key, int) for key in value):
        return [_rows_as_lists(value[index]) for index in sorted(value)]
    return {key: _rows_as_lists(inner) for key, inner in value.items()}
