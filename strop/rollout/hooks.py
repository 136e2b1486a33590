"""`rollout.hooks`: functions that see every finished sample before it is rewarded."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from strop.errors import Recorded
from strop.plugins import check_options, resolve
from strop.rollout.deadline import within
from strop.sample import Sample

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


class HookFailed(Recorded):
    """A hook raised, or returned something."""


@dataclass(frozen=True, slots=True)
class Plain:
    """A function `(sample) -> None`, `def` or `async def`."""

    fn: Callable[[Sample], Any]

    async def __call__(self, sample: Sample, occasion: Occasion) -> None:  # noqa: ARG002 - the seam's
        returned = self.fn(sample)
        if inspect.isawaitable(returned):
            returned = await returned
        if returned is not None:
            raise TypeError(f"expected None, got {returned!r}: a hook changes the sample in place")


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of a run, in order."""

    each: Sequence[tuple[str, Hook]] = ()
    """With the name that the run gives each."""
    timeout_s: float = 600.0
    """For one call."""

    async def run(self, sample: Sample, occasion: Occasion) -> None:
        """Raises HookFailed for the first that fails; later ones are then not called."""
        for name, hook in self.each:
            async with within(self.timeout_s, HookFailed, f"hook {name}"):
                await hook(sample, occasion)


def open_hook(spec: str, *, key: str) -> Hook:
    """The function that one element of `rollout.hooks` names. Raises PluginError."""
    fn = resolve(spec, key=key, names={}, group=GROUP)
    check_options(fn, {}, key=f"{key} = {spec!r}", num_given=1)
    return Plain(fn)
