"""What a run that goes on must agree on with the run that it was."""

from pathlib import Path
from typing import Any

from strop.config.load import Loaded
from strop.config.show import to_json
from strop.config.toml_text import shown
from strop.errors import ConfigError
from strop.store.checkpoints import latest_checkpoint
from strop.store.config_changes import FREE_TO_CHANGE, changed_keys, flat
from strop.store.json_text import read_json
from strop.store.layout import CONFIG, finished_steps


def refuse_changes(directory: Path, loaded: Loaded) -> None:
    """Raises ConfigError for a setting that would make a resumed run another one, or end it in the past."""
    begun, asked = read_json(directory / CONFIG)["values"], to_json(loaded)["values"]
    changed = changed_keys(begun, asked)
    if changed:
        key = changed[0]
        more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
        raise ConfigError(
            f"{_origin(key, loaded)}: {key} = {_value(key, asked)}, but the run was begun with "
            f"{_value(key, begun)}{more}; set it back or begin a new run; a resumed one may change "
            f"{', '.join(FREE_TO_CHANGE)} only"
        )
    checkpoint, steps = latest_checkpoint(directory), loaded.config.loop.steps
    if checkpoint is not None and checkpoint.step > steps and finished_steps(directory) is None:
        raise ConfigError(
            f"{loaded.origins['loop.steps']}: loop.steps = {steps}, but the run is {checkpoint.step} steps "
            f"along; give at least {checkpoint.step}"
        )


def _origin(key: str, loaded: Loaded) -> str:
    """Of the key, or of the first thing in its list or table."""
    inside = (origin for name, origin in loaded.origins.items() if f"{name}.".startswith(f"{key}."))
    return next(inside, key)


def _value(key: str, values: dict[str, Any]) -> str:
    leaves = flat(values)
    return shown(leaves[key]) if key in leaves else "unset"
