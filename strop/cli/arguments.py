"""The arguments of a command that is not about a configuration: names, flags with values, switches."""

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

from strop.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Arguments:
    """What was given, in order."""

    names: list[str]
    """What is not a flag."""
    values: dict[str, list[str]]
    """Flag → its values, as often as it was given; every flag of the command is a key."""
    switches: set[str]

    def one(self, flag: str) -> str | None:
        """The value of a flag that may be given once; ConfigError when it was given twice."""
        given = self.values[flag]
        if len(given) > 1:
            raise ConfigError(f"{flag}: given {len(given)} times, expected once")
        return given[0] if given else None


def parse_arguments(
    argv: list[str], command: str, *, flags: Collection[str] = (), switches: Collection[str] = ()
) -> Arguments:
    """Sort `argv` out. `flags` take a value (`--n 3` or `--n=3`), `switches` take none.

    Raises ConfigError for a flag that `command` does not have, or whose value is missing or not wanted.
    """
    parsed = Arguments([], {flag: [] for flag in flags}, set())
    rest = list(argv)
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        if flag in flags:
            if not equals and (not rest or rest[0].startswith("--")):
                raise ConfigError(f"{flag}: needs a value")
            parsed.values[flag].append(value if equals else rest.pop(0))
        elif flag in switches:
            if equals:
                raise ConfigError(f"{flag}: takes no value, got {value}")
            parsed.switches.add(flag)
        elif flag.startswith("-") and flag != "-":
            raise ConfigError(f"{flag}: {_meant(flag, command, [*flags, *switches])}")
        else:
            parsed.names.append(flag + equals + value)
    return parsed


def take_own(
    argv: list[str], command: str, *, flags: Collection[str] = (), switches: Collection[str] = ()
) -> tuple[Arguments, list[str]]:
    """The command's own flags out of `argv`, where those of a configuration are too; and the rest."""
    own: list[str] = []
    rest: list[str] = []
    words = list(argv)
    while words:
        word = words.pop(0)
        flag, equals, _ = word.partition("=")
        if flag in flags:
            own += [word] if equals else [word, *words[:1]]
            words = words if equals else words[1:]
        else:
            (own if flag in switches else rest).append(word)
    return parse_arguments(own, command, flags=flags, switches=switches), rest


def whole_number(flag: str, text: str, *, least: int) -> int:
    """The number in `text`; ConfigError, opened by `flag`, when it is none or below `least`."""
    if not text.isdecimal() or int(text) < least:
        raise ConfigError(f"{flag}: expected a whole number of at least {least}, got {text}")
    return int(text)


def _meant(flag: str, command: str, known: list[str]) -> str:
    close = get_close_matches(flag, known, n=1)
    way_out = f"did you mean {close[0]}?" if close else f"it has {', '.join(known) or 'none'}"
    return f"unknown flag of {command}; {way_out}"
