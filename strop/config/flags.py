"""The command line: `--section.key value`, `--section.key=value`, slime's flat flags.

Every flag either sets a key, asks for what strop does anyway, or is an error; none is abbreviated or ignored.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from strop.config import slime, slime_flags
from strop.config.flag_values import parse, scalar
from strop.config.flatten import Source, flatten_free, flatten_leaf
from strop.config.schema import KeyPath, Target, nearest, resolve
from strop.config.schema import slime_flags as flags_on_keys
from strop.config.settings import Place, Problems, Put, Settings, overlap
from strop.config.suggest import misspelt, unknown_flag
from strop.config.toml_text import dotted
from strop.errors import ConfigError

LAYER = 1_000_000
"""Sorts flags behind every file."""
FLAG = re.compile(r"-.*[A-Za-z]")
"""Also with one dash or three: misspelt, it is no value. Numbers are told apart; `--key=-text` is a value."""


@dataclass(frozen=True)
class Given:
    """One flag with the words that follow it."""

    flag: str
    texts: list[str]
    place: Place

    def __str__(self) -> str:
        return " ".join([self.flag, *self.texts])


def split_arguments(arguments: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Run files, which come first, and flags."""
    first = next((at for at, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    return [Path(word) for word in arguments[:first]], list(arguments[first:])


def apply_flags(flags: Sequence[str], settings: Settings, problems: Problems, *, also: Iterable[str]) -> None:
    """Put what the flags set over what the files did; `also`: the command's own flags, to suggest."""
    given = list(_merged(_given(flags)))
    setter = _Setter(settings, problems, also=list(also))
    for item in given:
        with problems.caught_at(item.place):
            setter.set(item, setter.early(item))
    for item in given:
        if item.flag in slime.LATE:
            with problems.caught_at(item.place):
                setter.set(item, slime.late(item.flag, item.texts, settings), is_late=True)


def _given(flags: Sequence[str]) -> Iterator[Given]:
    """Raises `ConfigError` for words before the first flag."""
    starts: list[int] = []
    for at, word in enumerate(flags):
        if _is_flag(word) or (at and at - 1 not in starts and _looks_like_flag(word)):
            starts.append(at)
    first = starts[0] if starts else len(flags)
    if first:
        raise ConfigError(
            f"command line: {flags[0]} is not a flag; flags begin with --, run files go before them"
        )
    for number, (start, end) in enumerate(pairwise([*starts, len(flags)])):
        flag, equals, value = flags[start].partition("=")
        texts = [value] if equals else []
        yield Given(flag, [*texts, *flags[start + 1 : end]], Place(flag, (LAYER, number)))


def _merged(given: Iterable[Given]) -> Iterator[Given]:
    """A flag of slime's that may come more than once comes once, with all of its words."""
    first: dict[str, Given] = {}
    for item in list(given):
        if item.flag in slime.REPEATABLE and item.flag in first:
            first[item.flag].texts.extend(item.texts)
        else:
            first.setdefault(item.flag, item)
            yield item


def _is_flag(word: str) -> bool:
    return bool(FLAG.match(word)) and not isinstance(scalar(float, word), float)


def _looks_like_flag(word: str) -> bool:
    """A flag with something for its first dash, or before it; in a list it would be taken for a value."""
    flags = (word[1:].partition("=")[0], f"-{word[1:]}".partition("=")[0])
    return any(flag[:2] == "--" and (_is_translated(flag) or _target(flag)) for flag in flags)


def _is_translated(flag: str) -> bool:
    return flag in slime.EARLY or flag in slime.LATE


def _target(flag: str) -> Target | None:
    if flag in flags_on_keys():
        return resolve([str(part) for part in flags_on_keys()[flag]])
    return resolve(flag.removeprefix("--").split(".")) if flag.startswith("--") else None


@dataclass
class _Setter:
    settings: Settings
    problems: Problems
    also: list[str]
    claims: dict[KeyPath, Given] = field(default_factory=dict)
    """Which flag set what, so that no key is set by two."""

    def early(self, given: Given) -> list[slime.Assignment]:
        """What the flag sets by itself; raises `ConfigError` for a flag that nothing answers to."""
        target = _target(given.flag)
        if target:
            texts = slime.adapted(given.flag, given.texts)
            return [(target.path, parse(target, texts, given.flag))]
        translated = slime.early(given.flag, given.texts)
        if translated is not None:
            return translated
        if given.flag in slime.LATE:
            return []
        answer = slime_flags.answer_for(given.flag)
        if answer is None or self._is_misspelt(given.flag):
            raise ConfigError(unknown_flag(given.flag, self._names()))
        if not slime.accepts(answer, given.texts):
            raise ConfigError(answer.text)
        return []

    def set(self, given: Given, assignments: list[slime.Assignment], *, is_late: bool = False) -> None:
        for path, assigned in assignments:
            value = self._added(path, assigned) if given.flag in slime.ADDING else assigned
            self._claim(path, given, is_late=is_late)
            self._require_row(path)
            source = Source(Path.cwd(), lambda _: given.place)
            target = nearest(path)
            if target.inside:
                self.settings.take(flatten_free(value, path, source), self.problems)
            elif path == target.path:
                self.settings.take(flatten_leaf(target.leaf, value, path, source), self.problems)
            else:
                self._set_element(target, path, value, given)

    def _added(self, path: KeyPath, value: list[Any]) -> Any:
        """What stands in a list already, with `value` behind it; what is no list stays, and is answered."""
        before = self.settings.get(path, nearest(path).leaf.default)
        return [*before, *value] if isinstance(before, list) else before

    def _set_element(self, target: Target, path: KeyPath, value: Any, given: Given) -> None:
        """One element of a list of fixed length; the others stay as they are."""
        before = self.settings.puts.get(target.path)
        elements = list(before.value if before else target.leaf.default)
        elements[int(path[-1])] = value
        self.settings.put(Put(target.path, tuple(elements), given.place))

    def _is_misspelt(self, flag: str) -> bool:
        """Answered by its beginning alone, though one letter makes it a flag that sets something."""
        setting = [*flags_on_keys(), *slime.EARLY, *slime.LATE]
        return flag not in slime_flags.names() and misspelt(flag, setting) is not None

    def _claim(self, path: KeyPath, given: Given, *, is_late: bool) -> None:
        """A flag that is applied late refines what another one set as a whole."""
        for claimed, by in self.claims.items():
            adds = by.flag in slime.ADDING and given.flag in slime.ADDING
            refines = is_late or self._adds_to(claimed, path)
            if (claimed == path and not adds) or (overlap(claimed, path) and claimed != path and not refines):
                raise ConfigError(f"{dotted(path)} is set twice, by `{by}` and by `{given}`; remove one")
        self.claims[path] = given

    def _adds_to(self, claimed: KeyPath, path: KeyPath) -> bool:
        """A key within what another flag set as a whole, such as `n` of a row, that this one left unset."""
        return claimed == path[: len(claimed)] and not any(overlap(put, path) for put in self.settings.puts)

    def _require_row(self, path: KeyPath) -> None:
        row = next((end for end, part in enumerate(path) if isinstance(part, int)), None)
        if row is None or path[:row] == slime.BETAS or self.settings.under(path[: row + 1]):
            return
        rows = {put.path[row] for put in self.settings.under(path[:row]) if len(put.path) > row}
        raise ConfigError(
            f"{dotted(path[:row])} has no number {path[row]}: it has {len(rows)}, counted from 0"
        )

    def _names(self) -> list[str]:
        return [*flags_on_keys(), *slime.EARLY, *slime.LATE, *self.also, *slime_flags.names()]
