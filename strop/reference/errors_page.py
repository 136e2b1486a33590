"""docs/reference/errors.md: the exception tree, when each is raised, and how a command ends."""

import inspect
from collections.abc import Iterator

from strop import errors
from strop.errors import InputError, Recorded, StropError
from strop.reference.markdown import code, page, paragraph, table

INTRO = """
Everything that strop raises on purpose is a `StropError` whose text is one line: where it is wrong, what
was given, what was expected, the way out. A command prints it after `strop: ` on standard error. Anything
else that ends a command with a traceback is a bug.
"""
ENDS = """
From Python, catch `strop.errors.InputError` for what the user gave and `RunError` for what happened while
it ran; `load_config` and everything that checks raises the former only, before anything is written.
"""


def render() -> str:
    """The page."""
    drawn = inspect.getdoc(errors) or ""
    return page(
        "Errors",
        "strop/errors.py",
        paragraph(INTRO),
        code(drawn.partition("\n\n")[2], "text"),
        table(("error", "exit code", "when"), _rows(StropError)),
        paragraph(ENDS),
    )


def _rows(error: type[StropError]) -> Iterator[tuple[str, str, str]]:
    """The error and those below it that belong to the tree, depth first."""
    yield f"`{error.__name__}`", _exit_code(error), " ".join((inspect.getdoc(error) or "").split())
    for child in error.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _rows(child)


def _exit_code(error: type[StropError]) -> str:
    if issubclass(error, Recorded):
        return "–"
    return "2" if issubclass(error, InputError) else "1"
