"""docs/reference/cli.md: what every command prints when it is asked for help, and the exit codes."""

import inspect
import io
import re
from contextlib import redirect_stdout

from strop.cli import main as entry
from strop.reference.markdown import code, page, paragraph, table

INTRO = """
`strop COMMAND --help` prints what is here. A command answers within half a second when its input is wrong:
what is heavy is loaded after everything was looked at. The first `Ctrl-C` during training ends the run
after its step, with a checkpoint; the second ends it at once.
"""


def render() -> str:
    """The page."""
    doc = inspect.getdoc(entry) or ""
    codes = re.findall(r"(\d+) ([a-z ]+)[,.]", doc)
    commands = [part for name in entry.COMMANDS for part in (f"## strop {name}", _help(name))]
    return page(
        "Commands",
        "strop/cli",
        paragraph(INTRO),
        _help(),
        *commands,
        "## Exit codes",
        table(("code", "meaning"), codes),
    )


def _help(*command: str) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed):
        entry.main([*command, "--help"])
    return code(printed.getvalue(), "text")
