"""`Forecast`: what a run will take of this machine, and what to change where that is too much."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from strop.config.algo_rules import has_own_critic
from strop.config.tree import Config, Lora
from strop.engines.local.capacity import ROUNDING
from strop.forecast.load import Lengths, Load, load_of
from strop.forecast.memory import Base, Memory, memory_of
from strop.forecast.shape import Shape, shape_of, weights_of
from strop.forecast.timing import Speed, Times, times_of
from strop.preflight import Prepared
from strop.prompts.open import look_ahead
from strop.runtime.memory import GIB, MachineMemory
from strop.sample import Prompt

_RANK = 16
"""Of the adapters that are advised where the whole model is too much."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Of one run on one machine."""

    prepared: Prepared
    shape: Shape
    lengths: Lengths
    load: Load
    memory: Memory
    machine: MachineMemory

    @property
    def fits(self) -> bool:
        """Whether the machine has so much memory; that others use some of it now is another question."""
        return self.memory.peak.size <= self.machine.total

    def times(self, speed: Speed) -> Times:
        """At this speed."""
        return times_of(self.prepared.config, self.lengths, self.load, speed)

    def as_json(self) -> dict[str, Any]:
        """For `strop plan --json`; bytes and tokens."""
        load = self.load
        return {
            "plan": self.prepared.plan.as_json(),
            "weights": self.shape.weights,
            "response_tokens": self.lengths.response,
            "response_is_measured": self.lengths.is_measured,
            "prompt_tokens": self.lengths.prompt,
            "load": {
                "rows": load.rollout.rows,
                "capacity": load.rollout.capacity,
                "update_tokens": load.update_tokens,
                "micro_tokens": load.micro_tokens,
                "micro_batches": load.num_micro,
            },
            "memory": self.memory.as_json(),
            "machine": {"total": self.machine.total, "available": self.machine.available},
            "fits": self.fits,
        }


def forecast(prepared: Prepared, base: Base, machine: MachineMemory, *, response: float | None) -> Forecast:
    """Of the run that `prepared` is for. `response`: tokens of a typical response, as measured in a run;
    None: the most that is allowed."""
    shape = _shape(prepared, prepared.config.train.lora)
    lengths = _lengths(prepared, response)
    load = load_of(prepared.config, lengths)
    memory = memory_of(prepared.config, shape, load, base, updates=prepared.plan.total_updates)
    return Forecast(prepared, shape, lengths, load, memory, machine)


def _shape(prepared: Prepared, lora: Lora) -> Shape:
    guests = sum(guest.size_bytes() for guest in prepared.rewards.guests)
    teachers = weights_of(prepared.teaching.paths)
    critic = weights_of([prepared.critic or prepared.model]) if has_own_critic(prepared.config) else 0
    return replace(shape_of(prepared.model, lora), guests=guests, teachers=teachers, critic=critic)


def first_prompts(prepared: Prepared) -> list[Prompt]:
    """Every prompt of a data set, the first of a source without end."""
    return look_ahead(prepared.source, prepared.config.rollout.batch_size)


def _lengths(prepared: Prepared, response: float | None) -> Lengths:
    def of(prompts: list[Prompt]) -> tuple[int, ...]:
        return tuple(len(prepared.renderer.prompt(prompt)) for prompt in prompts)

    most = prepared.config.rollout.max_response_tokens
    evals = {name: of(prompts) for name, prompts in prepared.eval_sets.items()}
    typical = most if response is None else min(response, most)
    return Lengths(of(first_prompts(prepared)), evals, typical, is_measured=response is not None)


def way_out(found: Forecast, base: Base) -> str:
    """What to change so that the run fits, in one line: one key where one is enough."""
    for said, config in _smaller(found.prepared.config, found.load):
        lora = config.train.lora
        shape = found.shape
        if lora != found.prepared.config.train.lora:
            shape = _shape(found.prepared, lora)
        load = load_of(config, found.lengths)
        memory = memory_of(config, shape, load, base, updates=found.prepared.plan.total_updates)
        if memory.peak.size <= found.machine.total:
            return f"{said} (then {memory.peak.size / GIB:.1f} GiB)"
    return "take a smaller model, or a machine with more memory"


def _smaller(config: Config, load: Load) -> Iterator[tuple[str, Config]]:
    """Ways to take less, the cheapest first."""
    for tokens in _halves(load.micro_tokens, 256):
        yield (
            f"set train.max_tokens_per_device = {tokens}",
            _with(config, train={"max_tokens_per_device": tokens}),
        )
    row = max(rows.capacity + rows.prompt_capacity for rows in (load.rollout, *load.evals.values()))
    most = max(rows.tokens for rows in (load.rollout, *load.evals.values()))
    for tokens in _halves(most, row):
        yield f"set engine.max_tokens = {tokens}", _with(config, engine={"max_tokens": tokens})
    both = _with(config, train={"max_tokens_per_device": 256}, engine={"max_tokens": max(64, row)})
    said = f"set train.max_tokens_per_device = 256 and engine.max_tokens = {max(64, row)}"
    yield said, both
    if config.train.lora.rank == 0:
        lora = config.train.lora.model_copy(update={"rank": _RANK})
        yield f"set train.lora.rank = {_RANK}", _with(config, train={"lora": lora})
        yield f"{said}, and train.lora.rank = {_RANK}", _with(both, train={"lora": lora})


def _halves(size: int, least: int) -> Iterator[int]:
    """Below `size`, each about half of the one before, not below `least`; whole steps of the cache."""
    while (size := size // 2 // ROUNDING * ROUNDING) >= max(least, 64):
        yield size


def _with(config: Config, **sections: dict[str, Any]) -> Config:
    changed = {name: dict(config)[name].model_copy(update=keys) for name, keys in sections.items()}
    return config.model_copy(update=changed)
