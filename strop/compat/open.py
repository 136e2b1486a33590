"""A run's functions with slime's signatures, found and checked before the run begins."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from strop.config.slime_paths import FILTER, PROCESS, SLIME, is_slimes, split
from strop.config.tree import Config
from strop.errors import ConfigError
from strop.plugins import name_of
from strop.rollout.hooks import Hook, StepHook

if TYPE_CHECKING:
    from strop.compat.runtime import Runtime
    from strop.compat.source import SlimeSource


@dataclass
class Slime:
    """What `strop.plugins.resolve` finds under the specs that begin with `slime:`, key by key; empty for a
    run without any."""

    generate: dict[str, object] = field(default_factory=dict)
    rewards: dict[str, object] = field(default_factory=dict)
    keep: dict[str, object] = field(default_factory=dict)
    hooks: dict[str, Hook] = field(default_factory=dict)
    step_hooks: list[tuple[str, StepHook]] = field(default_factory=list)
    runtime: "Runtime | None" = None

    def source(self) -> "SlimeSource":
        """The data source that `prompts.source` names. Raises InputError."""
        from strop.compat.load import load
        from strop.compat.source import SlimeSource

        run, key = self.runtime, "prompts.source"
        assert run is not None
        spec, options = run.config.prompts.source, run.config.prompts.options
        assert spec is not None
        for name in options:
            if name != "buffer_filter":
                raise ConfigError(f"prompts.options.{name}: {key} = {spec!r} takes buffer_filter alone")
        cls, size = load(spec, key=key), run.config.rollout.samples_per_prompt
        run.source = SlimeSource(partial(cls, run.args), name=name_of(cls), group_size=size)
        return run.source

    def move_model(self, model: Path) -> None:
        """It was fetched, to another place than was foreseen; functions were only looked up so far."""
        if self.runtime is not None:
            self.runtime.model = model

    async def close(self) -> None:
        """More than once is harmless."""
        if self.runtime is not None:
            await self.runtime.close()


def open_slime(config: Config, model: Path) -> Slime:
    """Raises PluginError. Nothing is imported for a run that names no such function."""
    found = Slime()
    if not any(_specs(config)):
        return found
    from strop.compat import functions
    from strop.compat.runtime import Runtime

    rollout = config.rollout
    run = found.runtime = Runtime(config, model, serves=is_slimes(rollout.generate))
    if rollout.generate is not None and is_slimes(rollout.generate):
        found.generate[rollout.generate] = functions.open_generate(rollout.generate, run)
    if rollout.keep is not None and is_slimes(rollout.keep):
        found.keep[rollout.keep] = functions.open_keep(rollout.keep, run)
    for key, spec in _rewards(config):
        is_group = config.reward.group and key == "reward.fn"
        found.rewards[spec] = functions.open_reward(spec, run, key=key, is_group=is_group)
    for place, spec in enumerate(rollout.hooks):
        _open_hook(found, spec, run, key=f"rollout.hooks.{place}")
    return found


def _open_hook(found: Slime, spec: str, run: "Runtime", *, key: str) -> None:
    from strop.compat import functions

    prefix = split(spec)[0]
    if prefix == SLIME:
        found.hooks[spec] = functions.open_hook(spec, run, key=key)
    elif prefix == FILTER:
        found.step_hooks.append((spec, functions.open_step_filter(spec, run, key=key)))
    elif prefix == PROCESS:
        found.step_hooks.append((spec, functions.open_step_process(spec, run, key=key)))


def _specs(config: Config) -> Iterator[str]:
    rollout = config.rollout
    named = (config.prompts.source, rollout.generate, rollout.keep, *rollout.hooks)
    yield from (spec for spec in named if spec is not None and is_slimes(spec))
    yield from (spec for _, spec in _rewards(config))


def _rewards(config: Config) -> list[tuple[str, str]]:
    """Key and spec of every reward with slime's signature."""
    named = [("reward.fn", config.reward.fn)]
    named += [("reward.weights", name) for name in config.reward.weights]
    named += [(f"eval.datasets.{s.name}.reward", s.reward) for s in config.eval.datasets if s.reward]
    named += [(f"prompts.mixture.{p.name}.reward", p.reward) for p in config.prompts.mixture if p.reward]
    return [(key, spec) for key, spec in named if is_slimes(spec)]
