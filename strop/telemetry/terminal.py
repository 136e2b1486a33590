"""How text reaches a terminal, a pipe or a file: styled and live in the first, plain lines in the others."""

from collections.abc import Mapping
from typing import TextIO, cast

from rich.console import Console as Terminal

from strop.telemetry.outlet import Outlet

WIDTH = 100
"""Columns of plain output; a terminal has its own."""


def is_coloured(file: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether colours may be used: on a terminal, unless NO_COLOR (no-color.org) is set."""
    return file.isatty() and environ.get("TERM") != "dumb" and not environ.get("NO_COLOR")


def open_terminal(file: TextIO, *, plain: bool) -> Terminal:
    """A rich console on `file`, which it never fails to write; a plain one writes no control sequence of any
    kind."""
    outlet = cast(TextIO, Outlet(file))
    if plain:
        return Terminal(
            file=outlet, force_terminal=False, color_system=None, width=WIDTH, highlight=False, emoji=False
        )
    return Terminal(file=outlet, force_terminal=True, highlight=False, emoji=False)
