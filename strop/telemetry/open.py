"""The `telemetry` section → one `Sink`; packages that are missing are found before a run begins."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from strop.config.tree import Config, Telemetry
from strop.errors import ConfigError, MissingPackage
from strop.telemetry.base import Silent, Sink
from strop.telemetry.charts import Chart, Charts, OpenChart

_EXTRAS = ("tensorboard", "wandb")
"""Sinks whose package of the same name is an extra."""


def check_sinks(section: Telemetry, *, find: Callable[[str], Any] = find_spec) -> None:
    """Raises MissingPackage for the first sink whose package is not installed, ConfigError for one that would
    have to ask for a key. Imports no package, but for the latter."""
    for name in section.sinks:
        if name in _EXTRAS and find(name) is None:
            raise MissingPackage(
                f'telemetry.sinks has "{name}", which is not installed: pip install "strop[{name}]"'
            )

    if "wandb" in section.sinks and section.wandb.mode == "online":
        from strop.telemetry.wandb import has_key

        if not has_key():
            raise ConfigError(
                'telemetry.wandb.mode = "online" needs an API key: run `wandb login`, set WANDB_API_KEY or '
                'use "offline"'
            )


def open_sinks(config: Config, run: Path, on_failed: Callable[[str, str], None]) -> Sink:
    """What shows the run at `run`. `on_failed(name, why)`: a chart broke, and the run goes on without it."""
    main: Sink = Silent()
    if "console" in config.telemetry.sinks:
        from strop.telemetry.console import Console

        main = Console()

    def tensorboard(first_step: int) -> Chart:
        from strop.telemetry.tensorboard import TensorBoard

        return TensorBoard(run, first_step)

    def wandb(_first_step: int) -> Chart:
        from strop.telemetry.wandb import WandB

        return WandB(run, config)

    openers: dict[str, OpenChart] = {"tensorboard": tensorboard, "wandb": wandb}
    wanted: dict[str, OpenChart] = {
        name: opener for name, opener in openers.items() if name in config.telemetry.sinks
    }
    return Charts(main, wanted, on_failed) if wanted else main
