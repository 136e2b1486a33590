"""`strop show`: a prompt's samples before and after, tokens shaded by advantage."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from strop.cli.arguments import parse_arguments, whole_number
from strop.errors import ConfigError, InputError

if TYPE_CHECKING:
    from strop.render.token_texts import Decode
    from strop.store.reader import RunReader

USAGE = """strop show RUN [--step N|last] … [--prompt ID] [--n K] [--eval NAME]

The same prompt's samples at each step (by default --step 0 --step last), for K prompts (3). Green was
reinforced, red discouraged, the stronger the more; without colours [+0.94: …] says so.
--prompt ID   one prompt
--eval NAME   samples of a held-out set, which is also shown when no prompt was trained on at each step"""

_FLAGS = ("--step", "--prompt", "--n", "--eval")


def main(argv: list[str]) -> int:
    """Print the samples; ConfigError when there is nothing to show."""
    if not argv or "--help" in argv or "-h" in argv:
        print(USAGE)
        return 0
    arguments = parse_arguments(argv, "strop show", flags=_FLAGS)
    if len(arguments.names) != 1:
        raise ConfigError(f"strop show: expected one run directory, got {len(arguments.names)}")
    num_prompts = whole_number("--n", arguments.one("--n") or "3", least=1)

    from strop.cli.before_after import Request, choose
    from strop.cli.scenes import print_view
    from strop.store.reader import RunReader
    from strop.telemetry.terminal import is_coloured, open_terminal

    request = Request(
        run=Path(arguments.names[0]),
        steps=tuple(arguments.values["--step"] or ["0", "last"]),
        prompt=arguments.one("--prompt"),
        num_prompts=num_prompts,
        dataset=arguments.one("--eval"),
    )
    reader = RunReader(request.run)
    view = choose(reader, request)
    out = open_terminal(sys.stdout, plain=not is_coloured(sys.stdout, os.environ))
    print_view(out, view, open_decoder=partial(_open_decoder, reader))
    return 0


def _open_decoder(reader: "RunReader") -> "Decode | None":
    """The tokenizer of the run's checkpoint, else of its model's directory; None when neither is at hand."""
    from strop.render.open import open_renderer

    checkpoint = reader.checkpoint()
    model = Path(reader.config()["values"]["model"])
    try:
        return open_renderer(model if checkpoint is None else checkpoint.path).decode
    except InputError:
        return None
