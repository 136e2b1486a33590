"""Functions with slime's signatures as what strop calls: generate, reward, filter of groups, hooks."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from strop.compat.endpoint import Turn, parameters
from strop.compat.filters import DynamicFilterOutput
from strop.compat.load import Form, form_of, load, passed_by_name
from strop.compat.runtime import Runtime
from strop.compat.sample import Sample as SlimeSample
from strop.errors import PluginError
from strop.plugins import is_async, name_of
from strop.randomness import derive
from strop.rollout.custom import Context
from strop.rollout.hooks import HookFailed, Occasion
from strop.rollout.keep import Drop
from strop.sample import Group, Prompt, Sample
from strop.threads import called

SAMPLE_FORM = Form(("args", "sample", "sampling_params"), ("evaluation",))
"""The form in slime's source."""
SAMPLES_FORM = Form(("args", "samples"), ("evaluation",))
"""The form on slime's page; the list holds the one sample to fill."""
_SEED_BITS = 63


@dataclass(frozen=True, slots=True)
class Generate:
    """`rollout.generate`."""

    fn: Callable[..., Any]
    form: Form
    run: Runtime

    async def __call__(self, prompt: Prompt, ctx: Context) -> list[Sample]:
        endpoint, run = self.run.endpoint, self.run
        assert endpoint is not None
        await endpoint.begin(Turn(ctx.engine, ctx.renderer, ctx.sampling, ctx.occasion))
        ids = ctx.renderer.prompt(prompt)
        given = run.shown(ctx.sample, prompt)
        given.prompt = run.prompt(ctx.sample, ids)
        returned = await self._call(given, ctx)
        given_back = returned if isinstance(returned, list) else [returned]
        made = [one for one in given_back if isinstance(one, SlimeSample)]
        if not made or len(made) != len(given_back):
            raise TypeError(f"expected a Sample or a list of them, got {returned!r}")
        samples = [ctx.sample, *(ctx.part() for _ in made[1:])]
        # Without a template the function renders the prompt itself; only it knows how its tokens begin.
        begins = ids if run.config.prompts.chat_template else []
        for one, sample in zip(made, samples, strict=True):
            run.absorb.made(one, sample, prompt_ids=begins, version=endpoint.version)
            endpoint.refuse_what_was_not_drawn(sample.sequence)
        return samples

    async def _call(self, given: SlimeSample, ctx: Context) -> object:
        named = passed_by_name(self.fn, {"evaluation": ctx.occasion.is_eval})
        if self.form is SAMPLES_FORM:
            return await self.fn(self.run.args, [given], **named)
        seed = derive(ctx.seed, "slime") >> (64 - _SEED_BITS)
        return await self.fn(self.run.args, given, parameters(ctx.sampling, seed=seed), **named)


@dataclass(frozen=True, slots=True)
class Reward:
    """`reward.fn`: one sample at a time."""

    fn: Callable[..., Any]
    run: Runtime

    async def __call__(self, sample: Sample) -> object:
        return await self.fn(self.run.args, self.run.shown(sample))


@dataclass(frozen=True, slots=True)
class GroupReward:
    """`reward.fn` with `reward.group`: all samples of a group, flat."""

    fn: Callable[..., Any]
    run: Runtime

    async def __call__(self, samples: Sequence[Sample]) -> object:
        return await self.fn(self.run.args, [self.run.shown(sample) for sample in samples])


@dataclass(frozen=True, slots=True)
class Keep:
    """`rollout.keep`."""

    fn: Callable[..., Any]
    run: Runtime

    def __call__(self, group: Group) -> bool | Drop:
        verdict = self.fn(self.run.args, [self.run.shown(sample, group.prompt) for sample in group.samples])
        if not isinstance(verdict, DynamicFilterOutput):
            kept: bool = verdict
            return kept
        reason = verdict.reason or "dynamic filter"
        return verdict.keep or Drop(reason, may_fill=verdict.keep_when_insufficient)


@dataclass(frozen=True, slots=True)
class SampleHook:
    """An element of `rollout.hooks`: `(args, sample, *, rollout_id, evaluation)`."""

    fn: Callable[..., Any]
    run: Runtime

    async def __call__(self, sample: Sample, occasion: Occasion) -> None:
        given = self.run.shown(sample)
        named = {"rollout_id": occasion.step, "evaluation": occasion.is_eval}
        by_name = passed_by_name(self.fn, named)
        call = partial(self.fn, self.run.args, given, **by_name)
        returned = await called(self.fn, call, error=HookFailed, what=f"hook {name_of(self.fn)}")
        if not isinstance(returned, SlimeSample | None):
            raise TypeError(f"expected a Sample or None, got {returned!r}")
        self.run.absorb.changed(returned or given, sample)


@dataclass(frozen=True, slots=True)
class StepFilter:
    """`(args, groups)`, of the groups to be trained: what it sets `remove_sample` on is not trained."""

    fn: Callable[..., Any]
    run: Runtime

    async def __call__(self, kept: Sequence[Group], every: Sequence[Group]) -> None:
        del every
        given = [[self.run.shown(s, group.prompt) for s in group.samples] for group in kept]
        returned = self.fn(self.run.args, given)
        if inspect.isawaitable(returned):
            await returned
        for group, samples in zip(kept, given, strict=True):
            for sample, one in zip(group.samples, samples, strict=True):
                self.run.absorb.changed(one, sample)


@dataclass(frozen=True, slots=True)
class StepProcess:
    """`(args, all_samples, data_source)`: sees every group of a step; changes no sample."""

    fn: Callable[..., Any]
    run: Runtime

    async def __call__(self, kept: Sequence[Group], every: Sequence[Group]) -> None:
        del kept
        given = [[self.run.shown(s, group.prompt) for s in group.samples] for group in every]
        returned = self.fn(self.run.args, given, self.run.data_source)
        if inspect.isawaitable(returned):
            await returned


def open_generate(spec: str, run: Runtime) -> Generate:
    """Raises PluginError."""
    key = "rollout.generate"
    fn = _awaited(load(spec, key=key), key=f"{key} = {spec!r}")
    return Generate(fn, form_of(fn, (SAMPLE_FORM, SAMPLES_FORM), key=f"{key} = {spec!r}"), run)


def open_reward(spec: str, run: Runtime, *, key: str, is_group: bool) -> Reward | GroupReward:
    """Raises PluginError."""
    fn = _awaited(load(spec, key=key), key=f"{key} = {spec!r}")
    form_of(fn, (Form(("args", "samples" if is_group else "sample")),), key=f"{key} = {spec!r}")
    return GroupReward(fn, run) if is_group else Reward(fn, run)


def open_keep(spec: str, run: Runtime) -> Keep:
    """Raises PluginError."""
    key = "rollout.keep"
    fn = load(spec, key=key)
    form_of(fn, (Form(("args", "samples")),), key=f"{key} = {spec!r}")
    if is_async(fn):
        raise PluginError(
            f"{key} = {spec!r}: {name_of(fn)} must be a plain `def`, as slime does not await it"
        )
    return Keep(fn, run)


def open_hook(spec: str, run: Runtime, *, key: str) -> SampleHook:
    """Raises PluginError."""
    fn = load(spec, key=key)
    form_of(fn, (Form(("args", "sample"), ("rollout_id", "evaluation")),), key=f"{key} = {spec!r}")
    return SampleHook(fn, run)


def open_step_filter(spec: str, run: Runtime, *, key: str) -> StepFilter:
    """Raises PluginError."""
    fn = load(spec, key=key)
    form_of(fn, (Form(("args", "groups")),), key=f"{key} = {spec!r}")
    return StepFilter(fn, run)


def open_step_process(spec: str, run: Runtime, *, key: str) -> StepProcess:
    """Raises PluginError."""
    fn = load(spec, key=key)
    form_of(fn, (Form(("args", "all_samples", "data_source")),), key=f"{key} = {spec!r}")
    return StepProcess(fn, run)


def _awaited(fn: Callable[..., Any], *, key: str) -> Callable[..., Any]:
    if not is_async(fn):
        raise PluginError(f"{key}: {name_of(fn)} must be `async def`, as slime awaits it")
    return fn
