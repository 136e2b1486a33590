"""Run files: TOML or YAML, to settings with their lines."""

import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from strop.config import toml_lines, yaml_lines
from strop.config.flatten import Source, flatten_section
from strop.config.schema import KeyPath
from strop.config.settings import Place, Problem, Put
from strop.config.toml_text import shown
from strop.config.tree import Config
from strop.config.yaml_lines import Document
from strop.errors import ConfigError


def read_file(file: Path, layer: int) -> Iterator[Put | Problem]:
    """Every key of a file; `layer` counts the files from the left.

    Raises `ConfigError` when the file cannot be read at all: missing, a directory, a syntax error.
    """
    text = _text(file)
    document = _parser(file)(text, str(file))
    if document.table is None:
        return
    if not isinstance(document.table, dict):
        raise ConfigError(f"{file}:1: {shown(document.table)} must be a table of sections, such as `loop:`")
    source = Source(base=file.absolute().parent, place=_places(str(file), layer, document.lines))
    yield from flatten_section(Config, document.table, (), source)


def _parser(file: Path) -> Callable[[str, str], Document]:
    match file.suffix.lower():
        case ".toml":
            return _parse_toml
        case ".yaml" | ".yml":
            return yaml_lines.parse
    raise ConfigError(f"{file}: not a run file: its name must end in .toml, .yaml or .yml")


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        beside = sorted(found.name for found in file.parent.glob("*.toml")) if file.parent.is_dir() else []
        there = (
            f"there is {', '.join(beside[:5])}" if beside else f"no .toml file is in {file.absolute().parent}"
        )
        raise ConfigError(f"{file}: no such file; {there}") from None
    except IsADirectoryError:
        raise ConfigError(f"{file}: is a directory; name a run file, such as {file}/run.toml") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None


def _parse_toml(text: str, name: str) -> Document:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error))
        if found:
            raise ConfigError(f"{name}:{found[2]}: not valid TOML: {found[1]} (column {found[3]})") from None
        reason = str(error).removesuffix(" (at end of document)")
        line = text.rstrip("\n").count("\n") + 1
        raise ConfigError(f"{name}:{line}: not valid TOML: {reason} (the text ends here)") from None
    return Document(table, toml_lines.key_lines(text))


def _places(name: str, layer: int, lines: dict[KeyPath, int]) -> Callable[[KeyPath], Place]:
    def place(path: KeyPath) -> Place:
        # A key inside an inline table has the line of the innermost key around it.
        known = next(path[:end] for end in range(len(path), 0, -1) if path[:end] in lines)
        return Place(f"{name}:{lines[known]}", (layer, lines[known]))

    return place
