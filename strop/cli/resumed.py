"""What a run that goes on must agree on with the run that it was, and what is said when it need not."""

from pathlib import Path
from typing import Any

from strop.config.load import Loaded
from strop.config.show import to_json
from strop.config.toml_text import shown
from strop.errors import ConfigError, DataError
from strop.prompts.base import PromptSource
from strop.store.checkpoints import latest_checkpoint
from strop.store.config_changes import SCHEDULE, STEPS, changed_keys, flat, free_to_change
from strop.store.json_text import read_json
from strop.store.layout import CONFIG

_DECIDES_BITS = ("plan.threads", "machine.processor", "machine.instruction_set")
"""In `config.json`: what the last bits of a sum depend on."""


def refuse_changes(directory: Path, loaded: Loaded) -> None:
    """Raises ConfigError for a setting that would make a resumed run another one, or end it in the past."""
    begun, asked = read_json(directory / CONFIG)["values"], to_json(loaded)["values"]
    changed = changed_keys(begun, asked)
    if changed:
        key = changed[0]
        more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
        schedule = f", where {SCHEDULE} = {_value(SCHEDULE, begun)} ends" if key == STEPS else ""
        raise ConfigError(
            f"{_origin(key, loaded)}: {key} = {_value(key, asked)}, but the run was begun with "
            f"{_value(key, begun)}{schedule}{more}; set it back or begin a new run; a resumed one may change "
            f"{', '.join(free_to_change(begun))} only"
        )
    checkpoint, steps = latest_checkpoint(directory), loaded.config.loop.steps
    if checkpoint is not None and checkpoint.step > steps:
        raise ConfigError(
            f"{loaded.origins[STEPS]}: {STEPS} = {steps}, but the run is {checkpoint.step} steps "
            f"along; give at least {checkpoint.step}"
        )


def refuse_other_prompts(directory: Path, source: PromptSource) -> None:
    """Raises DataError when the run's position belongs to other prompts; that of `source` stays."""
    checkpoint = latest_checkpoint(directory)
    if checkpoint is None:
        return
    position = source.state()
    try:
        source.restore(checkpoint.state["rollouts"]["prompts"])
    except DataError as caught:
        raise DataError(f'store.dir = "{directory}": {caught}') from caught
    source.restore(position)


def machine_changes(before: dict[str, Any], now: dict[str, Any]) -> dict[str, list[Any]]:
    """What two `config.json` records say of the machine where they differ: key → before and now."""
    old, new = flat(before), flat(now)
    return {key: [old.get(key), new[key]] for key in _DECIDES_BITS if old.get(key) != new[key]}


def machine_note(changes: dict[str, list[Any]]) -> str:
    """The changes in one line for a person."""
    listed = ", ".join(f"{key} {before} → {now}" for key, (before, now) in changes.items())
    return f"resumed on another machine: {listed}; from here on, numbers may differ in their last bits"


def _origin(key: str, loaded: Loaded) -> str:
    """Of the key, or of the first thing in its list or table."""
    inside = (origin for name, origin in loaded.origins.items() if f"{name}.".startswith(f"{key}."))
    return next(inside, key)


def _value(key: str, values: dict[str, Any]) -> str:
    leaves = flat(values)
    return shown(leaves[key]) if key in leaves else "unset"
