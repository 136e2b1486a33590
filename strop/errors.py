"""The exception tree, and `boundary`: the one place that catches what user code and remote parts throw.

StropError
├── InputError            what the user gave is wrong: one line, exit code 2
│   ├── ConfigError       a key, a flag or a file of the run
│   ├── DataError         a row of a data set
│   ├── PluginError       a function that the user named
│   └── MissingPackage    an optional package that this choice needs
└── RunError              the run cannot go on: one line, exit code 1
    ├── NothingToLearn    every group's rewards are equal, again and again
    ├── NonFinite         a loss or a gradient is not a number
    ├── EngineFailed      the engine broke
    └── Recorded          caught at a boundary and recorded on the sample; never ends a run by itself
        ├── RewardFailed
        ├── EnvironmentFailed
        ├── GenerateFailed
        └── TooLong           a sequence that the engine can never hold
"""

from collections.abc import Iterator
from contextlib import contextmanager


class StropError(Exception):
    """Every error that strop raises on purpose; its text is one line for a person."""


class InputError(StropError):
    """What the user gave is wrong: where, what, what was expected, the way out."""


class ConfigError(InputError):
    """A key, a flag or a file of the run is wrong."""


class DataError(InputError):
    """A row of a data set is wrong."""


class PluginError(InputError):
    """A function that the user named cannot be found or has the wrong shape."""


class MissingPackage(InputError):
    """This choice needs a package that is not installed; the text holds the install command."""


class RunError(StropError):
    """The run cannot go on."""


class NothingToLearn(RunError):
    """The filter dropped every group until `rollout.max_tries` was reached."""


class NonFinite(RunError):
    """A loss or a gradient norm is NaN or infinite."""


class EngineFailed(RunError):
    """The engine broke while it served a request."""


class Recorded(RunError):
    """Caught at a boundary and recorded on the sample."""


class RewardFailed(Recorded):
    """The reward function raised, timed out or returned something that is not a number."""


class EnvironmentFailed(Recorded):
    """The environment raised or timed out."""


class GenerateFailed(Recorded):
    """A custom generate function raised."""


class TooLong(Recorded):
    """A sequence that the engine can never hold."""


@contextmanager
def boundary(error: type[Recorded], what: str) -> Iterator[None]:
    """Turn whatever the block raises into `error`, its text opened by `what`.

    Holds around user code, remote engines and sandboxes, and nowhere else: a broad catch anywhere else
    would hide a bug of ours. A `StropError` passes through as it is; cancellation is never caught.
    """
    try:
        yield
    except StropError:
        raise
    except TimeoutError as caught:
        raise error(f"{what}: timed out") from caught
    except Exception as caught:
        raise error(f"{what}: {type(caught).__name__}: {first_line(str(caught))}") from caught


def first_line(text: str, limit: int = 300) -> str:
    """The first line of `text`, cut at `limit` characters: what fits in a one-line message."""
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= limit else line[: limit - 1] + "…"
