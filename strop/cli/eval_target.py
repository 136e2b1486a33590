"""What `strop eval` evaluates: a run's checkpoint, a model, or what a run file names."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from strop.config.load import Loaded, load_config
from strop.config.values import load_values
from strop.errors import ConfigError, RunError

if TYPE_CHECKING:
    from strop.store.checkpoints import Checkpoint
    from strop.store.reader import RunReader

_RUN_FILES = (".toml", ".yaml", ".yml")
_TRAINING = ("algo", "buffer", "store", "sync", "train")
"""Sections of what comes after a rollout."""


@dataclass(frozen=True, slots=True)
class Target:
    """A model and how it is evaluated."""

    loaded: Loaded
    """Without prompts to train on."""
    step: int | None
    """Completed steps of the run's checkpoint; None for a model."""


def open_target(
    names: Sequence[Path], flags: Sequence[str], *, step: int | None, own: Iterable[str]
) -> Target:
    """Raises ConfigError when it is none of the three, or when flags do not fit."""
    if not names:
        raise ConfigError("strop eval: name a run directory, a model or a run file, before the flags")
    first = names[0]
    is_run = (first / "run.json").is_file()
    if len(names) > 1 and (is_run or first.suffix not in _RUN_FILES):
        raise ConfigError(f"strop eval: expected one run or model, got {' '.join(map(str, names))}")
    if step is not None and not is_run:
        raise ConfigError(f"--step {step}: {first} is not a run directory; leave it out")
    if is_run:
        return _of_run(first, flags, step, own)
    if first.suffix in _RUN_FILES:
        return Target(_untrained(_refuse_idle(load_config(names, flags, also=own))), None)
    return Target(_of_model(str(first), flags, own), None)


def _of_model(name: str, flags: Sequence[str], own: Iterable[str]) -> Loaded:
    from strop.nn.catalog import model_path

    # First of all: what flags lack is no answer to a misspelt name.
    try:
        model_path(name)
    except ConfigError as caught:
        raise ConfigError(f"strop eval {name}: is not a run directory; as a model: {caught}") from caught
    origins = {"model": "strop eval", "loop.steps": "strop eval"}
    return _untrained(
        _refuse_idle(load_values({"model": name, "loop": {"steps": 0}}, origins, flags, also=own))
    )


def _of_run(run: Path, flags: Sequence[str], step: int | None, own: Iterable[str]) -> Target:
    from strop.config.show import from_json
    from strop.store.reader import RunReader

    reader = RunReader(run)
    checkpoint = _checkpoint(reader, step)
    before = from_json(reader.config(), str(run / "config.json"))
    values = {**before.config.model_dump(mode="json"), "model": str(checkpoint.path.absolute())}
    origins = {**before.origins, "model": f"step {checkpoint.step}"}
    loaded = _refuse_idle(load_values(values, origins, flags, also=own), origins)
    return Target(_untrained(loaded), checkpoint.step)


def _checkpoint(reader: "RunReader", step: int | None) -> "Checkpoint":
    from strop.store.checkpoints import numbered, read_checkpoint, step_of
    from strop.store.layout import checkpoint_path

    newest = reader.checkpoint() if step is None else None
    if newest is not None:
        return newest
    kept = [step_of(path) for path in numbered(reader.path / "checkpoints")]
    if step is None or not kept:
        raise ConfigError(f"{reader.path} has no checkpoint yet: there is no model to evaluate")
    if step not in kept:
        there = ", ".join(map(str, kept))
        raise ConfigError(f"--step {step}: {reader.path} keeps no checkpoint of it; kept: {there}")
    try:
        return read_checkpoint(checkpoint_path(reader.path, step))
    except RunError as caught:
        raise ConfigError(f"--step {step}: {caught}") from caught


def _refuse_idle(loaded: Loaded, before: Mapping[str, str] = MappingProxyType({})) -> Loaded:
    """What a flag sets must change what is evaluated; a run file may hold what it is trained with.

    `before`: the origins of what a run was given, flags among them."""
    for key, origin in loaded.origins.items():
        is_new = origin.startswith("--") and before.get(key) != origin
        if is_new and key.split(".")[0] in _TRAINING:
            raise ConfigError(f"{origin}: {key} has no effect on an evaluation; remove it")
    return loaded


def _untrained(loaded: Loaded) -> Loaded:
    """The same with nothing to train on: prompts that may lie elsewhere by now need not be read."""
    config = loaded.config
    prompts = config.prompts.model_copy(
        update={"files": [], "source": None, "options": {}, "mixture": [], "max_tokens": None}
    )
    loop = config.loop.model_copy(update={"steps": 0})
    return Loaded(config.model_copy(update={"prompts": prompts, "loop": loop}), loaded.origins)
