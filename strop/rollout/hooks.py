"""`rollout.hooks`: functions that see every finished sample before it is rewarded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from strop.errors import Recorded
from strop.plugins import check_options, resolve
from strop.rollout.deadline import within
from strop.sample import Group, Sample
from strop.threads import called

GROUP = "strop.hooks"
"""Entry points of installed packages that are hooks."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """When a sample is played."""

    step: int
    is_eval: bool


class Hook(Protocol):
    """Changes a finished sample in place, or raises what is then recorded on it."""

    async def __call__(self, sample: Sample, occasion: Occasion) -> None: ...


class StepHook(Protocol):
    """Sees the groups of a step once: those to be trained, and every one that was played, both in order.
    What it raises ends the run: there is no sample to record it on."""

    async def __call__(self, kept: Sequence[Group], every: Sequence[Group]) -> None: ...


class HookFailed(Recorded):
    """A hook raised, or returned something."""


@dataclass(frozen=True, slots=True)
class Plain:
    """A function `(sample) -> None`: `async def`, or `def`, which runs in a thread."""

    fn: Callable[[Sample], Any]
    name: str = "of rollout.hooks"

    async def __call__(self, sample: Sample, occasion: Occasion) -> None:  # noqa: ARG002 - the seam's
        what = f"hook {self.name}"
        returned = await called(self.fn, lambda: self.fn(sample), error=HookFailed, what=what)
        if returned is not None:
            raise TypeError(f"expected None, got {returned!r}: a hook changes the sample in place")


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of a run, in order."""

    each: Sequence[tuple[str, Hook]] = ()
    """With the name that the run gives each."""
    of_step: Sequence[tuple[str, StepHook]] = ()
    timeout_s: float = 600.0
    """For one call."""

    async def run(self, sample: Sample, occasion: Occasion) -> None:
        """Raises HookFailed for the first that fails; later ones are then not called."""
        for name, hook in self.each:
            async with within(self.timeout_s, HookFailed, f"hook {name}"):
                await hook(sample, occasion)

    async def close_step(self, kept: Sequence[Group], every: Sequence[Group]) -> None:
        """Raises HookFailed for the first that fails."""
        for name, hook in self.of_step:
            async with within(self.timeout_s, HookFailed, f"hook {name}"):
                await hook(kept, every)


def open_hook(spec: str, *, key: str, names: Mapping[str, Hook] = MappingProxyType({})) -> Hook:
    """The function that one element of `rollout.hooks` names; `names`: further ones, by spec. Raises
    PluginError."""
    if spec in names:
        return names[spec]
    fn = resolve(spec, key=key, names={}, group=GROUP)
    check_options(fn, {}, key=f"{key} = {spec!r}", num_given=1)
    return Plain(fn, spec)
