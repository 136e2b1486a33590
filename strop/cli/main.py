"""The `strop` command: finds the subcommand, turns errors into one line and an exit code.

0 done, 1 failed, 2 the input was wrong, 130 interrupted. Commands are imported when they are called, so that
`strop --help` imports nothing.
"""

import os
import sys
from importlib import import_module

from strop import __version__
from strop.errors import InputError, StropError
from strop.telemetry.outlet import let_go

COMMANDS = {
    "train": ("strop.cli.train", "post-train a model: strop train RUN.toml [--key value …] [--resume]"),
    "eval": ("strop.cli.evaluate", "evaluate a run or a model: strop eval RUN|MODEL|RUN.toml [--out DIR]"),
    "show": ("strop.cli.show", "samples before and after: strop show RUN [--step 0] [--step last]"),
    "compare": ("strop.cli.compare", "runs side by side: strop compare RUN RUN [RUN …] [--plot FILE.svg]"),
    "doctor": (
        "strop.cli.doctor",
        "check the installation, a run, a function: strop doctor [RUN.toml|FILE.py:NAME]",
    ),
    "plan": ("strop.cli.plan", "what a run will take: memory, time, batch: strop plan RUN.toml"),
    "config": ("strop.cli.config_command", "every key, its value and its origin: strop config RUN.toml"),
    "model": ("strop.cli.model", "get or make a model: strop model pull smollm2-135m | strop model tiny"),
}


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    # Before torch is loaded: its threads then sleep when they wait. Spinning, their default, makes a run ten
    # times slower as soon as anything else needs a core.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Python has no standard output at all when it was closed by whoever started it (`>&-`).
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - for the life of the process
    arguments = sys.argv[1:] if argv is None else argv
    code = 0
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read the output has seen enough: `strop show … | head`
        let_go(sys.stdout)
        return code
    except KeyboardInterrupt:
        print("strop: interrupted", file=sys.stderr)
        return 130
    except StropError as error:
        return _report(error)
    except BaseExceptionGroup as group:
        return _report(_first(group))


def _report(error: StropError) -> int:
    print(f"strop: {error}", file=sys.stderr)
    return 2 if isinstance(error, InputError) else 1


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        print(_help())
        return 0
    if arguments[0] == "--version":
        print(f"strop {__version__}")
        return 0
    if arguments[0] not in COMMANDS:
        from difflib import get_close_matches

        near = get_close_matches(arguments[0], COMMANDS, n=1)
        hint = f"did you mean {near[0]}?" if near else "expected one of: " + ", ".join(COMMANDS)
        raise InputError(f"{arguments[0]} is not a command; {hint}")
    command = import_module(COMMANDS[arguments[0]][0])
    code: int = command.main(arguments[1:])
    return code


def _help() -> str:
    rows = "\n".join(f"  {name:<9}{text}" for name, (_, text) in COMMANDS.items())
    return (
        f"strop {__version__}: reinforcement-learning post-training of LLMs and agents\n\n{rows}\n\n"
        "Every key of a run file answers to its dotted flag and to slime's: strop config --keys"
    )


def _first(group: BaseExceptionGroup[BaseException]) -> StropError:
    """The first error of a task group; the others follow from it. A bug of ours keeps its traceback."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if not isinstance(error, StropError):
        raise group
    return error
