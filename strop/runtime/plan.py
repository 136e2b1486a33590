"""What follows from a configuration and a machine: computed once, by a pure function, and frozen."""

from dataclasses import asdict, dataclass
from typing import Any

from strop.config.tree import Config
from strop.runtime.machine import Machine


@dataclass(frozen=True, slots=True)
class Plan:
    """The layout of a run."""

    groups_per_step: int
    samples_per_step: int
    num_updates: int
    """Optimizer updates a step."""
    total_updates: int
    """Of the policy, in the whole run; the learning rate's course ends there."""
    max_response_tokens: int
    temperature: float
    threads: int
    """Of the one compute thread team."""

    def as_json(self) -> dict[str, Any]:
        """For `config.json`."""
        return asdict(self)


def make_plan(config: Config, machine: Machine) -> Plan:
    """The layout of `config` on `machine`."""
    rollout = config.rollout
    return Plan(
        groups_per_step=rollout.batch_size,
        samples_per_step=rollout.batch_size * rollout.samples_per_prompt,
        num_updates=config.train.updates_per_step,
        total_updates=(config.loop.steps - config.algo.critic.warmup_steps) * config.train.updates_per_step,
        max_response_tokens=rollout.max_response_tokens,
        temperature=rollout.temperature,
        threads=config.runtime.threads or machine.cores,
    )
