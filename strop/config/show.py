"""A loaded config as text for people, which is a run file again, and as JSON for the run directory."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from strop.config.keys import Section
from strop.config.load import Loaded
from strop.config.rules import idle_keys
from strop.config.schema import KeyPath, Leaf, children, leaves, slime_flags, words
from strop.config.slime import EARLY, LATE
from strop.config.slime_flags import CAUTIONS
from strop.config.toml_text import dotted, write_key, write_value
from strop.config.tree import Config
from strop.errors import ConfigError

FORMAT = 1
WIDEST = 44
"""Longer settings push their comment to the right, instead of all comments."""


def to_toml(loaded: Loaded) -> str:
    """Every key with its value, the origin as a comment; loading the text gives an equal config.

    Keys that have no effect beside others are comments: given, they would be refused.
    """
    causes = {key: f"no effect with {cause}" for key, cause in idle_keys(loaded.config).items()}
    lines = list(_section(loaded.config, (), loaded.origins, idle=causes))
    width = max(len(line.setting) for line in lines if len(line.setting) <= WIDEST)
    return "\n".join(line.text(width) for line in lines).strip() + "\n"


def keys_text() -> str:
    """The reference: every key with its type, bounds, default, slime's flag and help."""
    translated = sorted({*EARLY, *LATE} - set(slime_flags()))
    flags = [f"    {flag}{_caution(flag)}" for flag in translated]
    entries = [_entry(path, leaf) for path, leaf in leaves()]
    return "\n".join([*entries, "slime's flags that are translated:", *flags]) + "\n"


def to_json(loaded: Loaded) -> dict[str, Any]:
    """For `config.json`: `{"format": 1, "values": {…}, "origins": {"loop.steps": "run.toml:14", …}}`."""
    return {
        "format": FORMAT,
        "values": loaded.config.model_dump(mode="json"),
        "origins": dict(loaded.origins),
    }


def from_json(record: dict[str, Any], name: str = "config.json") -> Loaded:
    """What `to_json` wrote; raises `ConfigError` that begins with `name` when this strop cannot read it."""
    if record.get("format") != FORMAT:
        got = write_value(record.get("format"))
        raise ConfigError(
            f"{name}: format = {got}, but this strop reads {FORMAT}; use the strop that wrote it"
        )
    try:
        # JSON mode takes a list for a tuple, which strict Python mode does not.
        config = Config.model_validate_json(json.dumps(record["values"]))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = dotted(first["loc"])
        raise ConfigError(f"{name}: {key}: {first['msg']}; use the version of strop that wrote it") from None
    return Loaded(config, record["origins"])


@dataclass(frozen=True)
class _Line:
    setting: str
    origin: str = ""

    def text(self, width: int) -> str:
        return f"{self.setting:<{width}}  # {self.origin}" if self.origin else self.setting


def _section(
    section: Section, path: KeyPath, origins: dict[str, str], *, idle: dict[str, str]
) -> Iterator[_Line]:
    """The keys of a section, then the sections in it: TOML allows no other order."""
    later: list[tuple[KeyPath, Section]] = []
    for name, child in children(type(section)).items():
        value = section.__dict__[name]
        here = (*path, name)
        if not isinstance(child, Leaf):
            later.append((here, value))
        elif child.rows and value:
            later += [((*here, number), row) for number, row in enumerate(value)]
        elif dotted(here) in idle:
            yield _Line(f"# {write_key(name)} = {write_value(value)}", idle[dotted(here)])
        else:
            yield _setting(name, value, _origin(here, origins))
    for here, inner in later:
        names = dotted([part for part in here if isinstance(part, str)])
        yield _Line("")
        yield _Line(f"[[{names}]]" if isinstance(here[-1], int) else f"[{names}]")
        yield from _section(inner, here, origins, idle=idle)


def _setting(name: str, value: Any, origin: str) -> _Line:
    if value is None:
        return _Line(f"# {name} is unset", origin)
    return _Line(f"{write_key(name)} = {write_value(value)}", origin)


def _origin(path: KeyPath, origins: dict[str, str]) -> str:
    key = dotted(path)
    if key in origins:
        return origins[key]
    inner = (origin for name, origin in origins.items() if name.startswith(f"{key}."))
    return ", ".join(dict.fromkeys(inner))


def _entry(path: KeyPath, leaf: Leaf) -> str:
    default = "required" if leaf.required else "unset" if leaf.default is None else write_value(leaf.default)
    kind = " ".join([words(leaf.type), *leaf.bounds])
    flag = f"; slime: {leaf.slime}" if leaf.slime else ""
    caution = _caution(leaf.slime) if leaf.slime else ""
    lines = [
        f"{dotted(path)} = {default}",
        f"    {kind}{flag}{caution}",
        *([f"    {leaf.help}"] if leaf.help else []),
    ]
    return "\n".join(lines) + "\n"


def _caution(flag: str) -> str:
    return f" ({CAUTIONS[flag]})" if flag in CAUTIONS else ""
