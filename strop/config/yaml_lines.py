"""A YAML text as a table, with the line of every key.

YAML 1.1 has traps for configuration: a repeated key wins silently, and `1e-5` is text. Here the first is an
error and the second a number, as in YAML 1.2.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from strop.config.schema import KeyPath
from strop.errors import ConfigError

MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """SafeLoader with its own copy of the resolvers, so that the package's stay as they are."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


@dataclass(frozen=True)
class Document:
    """A parsed text."""

    table: Any
    """What stands at the top; a table in any sensible file, None for an empty text."""
    lines: dict[KeyPath, int]


def parse(text: str, name: str) -> Document:
    """`text` of the file called `name`; raises `ConfigError` that begins with `name:line`."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return Document(None, {})
        walk = _Walk(name)
        walk.node(node, (), ())
        return Document(loader.construct_document(node), walk.lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ConfigError(f"{name}:{line}: not valid YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}:1: not valid YAML: {str(error).splitlines()[0]}") from error
    except ValueError as error:
        # PyYAML lets Python's own error out, e.g. for the 40th of May.
        raise ConfigError(f"{name}: not valid YAML: {error}; quote the value to make it text") from error
    finally:
        loader.dispose()


@dataclass
class _Walk:
    name: str
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def node(self, node: yaml.Node, path: KeyPath, above: tuple[yaml.Node, ...]) -> None:
        if node in above:
            raise self._error(node, "refers to itself; write it out")
        if isinstance(node, yaml.MappingNode):
            self._mapping(node, path, (*above, node))
        elif isinstance(node, yaml.SequenceNode):
            for index, child in enumerate(node.value):
                self.lines[(*path, index)] = child.start_mark.line + 1
                self.node(child, (*path, index), (*above, node))

    def _mapping(self, node: yaml.MappingNode, path: KeyPath, above: tuple[yaml.Node, ...]) -> None:
        seen: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag == MERGE:
                for merged in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    self.node(merged, path, above)
                continue
            if key.tag != "tag:yaml.org,2002:str":
                raise self._error(key, "a key must be text; quote it")
            if key.value in seen:
                raise self._error(key, f"{key.value} was given before, in line {seen[key.value]}; remove one")
            seen[key.value] = line
            self.lines[(*path, key.value)] = line
            self.node(value, (*path, key.value), above)

    def _error(self, node: yaml.Node, text: str) -> ConfigError:
        return ConfigError(f"{self.name}:{node.start_mark.line + 1}: {text}")
