"""The line of every key of a TOML text, which tomllib does not tell.

The text has been parsed before, so this scanner only has to find its way through valid TOML.
"""

import re
import tomllib
from dataclasses import dataclass, field

from strop.config.schema import KeyPath

KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
SPACE = re.compile(r"[ \t]*")
STRING = re.compile(r'''"""(?:[^\\]|\\[\s\S])*?"{3,5}|\'\'\'[\s\S]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*\'''')
PLAIN = re.compile(r"""[^"'\[\]{}#\n]+""")


def key_lines(text: str) -> dict[KeyPath, int]:
    """Key or table → line, counted from 1; what stands inside an inline table has the line of its key."""
    return _Scanner(text).scan()


@dataclass
class _Scanner:
    text: str
    at: int = 0
    table: KeyPath = ()
    """The table that keys belong to."""
    rows: dict[KeyPath, int] = field(default_factory=dict)
    """Array of tables → number of its last element."""
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def scan(self) -> dict[KeyPath, int]:
        self._skip(BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                self._header()
            else:
                self._key_and_value()
            self._skip(BLANK)
        return self.lines

    def _header(self) -> None:
        brackets = 2 if self.text.startswith("[[", self.at) else 1
        line = self._line()
        self.at += brackets
        names = self._key()
        self.at += brackets
        path = self._in_rows(names[:-1])
        if brackets == 2:
            array = (*path, names[-1])
            self.lines.setdefault(array, line)
            self.rows[array] = self.rows.get(array, -1) + 1
        self.table = self._in_rows(names)
        self.lines[self.table] = line

    def _key_and_value(self) -> None:
        line = self._line()
        path = self.table
        for name in self._key():
            path = (*path, name)
            self.lines.setdefault(path, line)
        self.at += 1
        self._value()

    def _key(self) -> list[str]:
        """The names of a dotted key; stops at what follows it."""
        names: list[str] = []
        while True:
            self._skip(SPACE)
            name = self._skip(KEY)
            names.append(name if name[0] not in "\"'" else str(tomllib.loads(f"x = {name}")["x"]))
            self._skip(SPACE)
            if self.text[self.at] != ".":
                return names
            self.at += 1

    def _value(self) -> None:
        """Past the value: up to the end of the line that is in no bracket and no string."""
        depth = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in "\"'":
                self._skip(STRING)
            elif char == "#" or (char == "\n" and depth):
                self._skip(BLANK)
                if not depth:
                    return
            elif char == "\n":
                return
            elif char in "[]{}":
                depth += 1 if char in "[{" else -1
                self.at += 1
            else:
                self._skip(PLAIN)

    def _in_rows(self, names: list[str]) -> KeyPath:
        """The path of a table's name: through the last element of each array of tables."""
        path: KeyPath = ()
        for name in names:
            path = (*path, name)
            if path in self.rows:
                path = (*path, self.rows[path])
        return path

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        assert found, f"no {pattern.pattern} at {self.at}"
        self.at = found.end()
        return found[0]

    def _line(self) -> int:
        return self.text.count("\n", 0, self.at) + 1
