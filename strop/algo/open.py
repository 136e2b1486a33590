"""From the `algo` section to an algorithm."""

from strop.algo.base import Algorithm
from strop.algo.grpo import Grpo
from strop.config.tree import Algo


def open_algorithm(section: Algo, *, num_updates: int) -> Algorithm:
    """The algorithm of `algo.type` for a step of `num_updates` optimizer updates."""
    match section.type:
        case "grpo":
            return Grpo(section, num_updates=num_updates)
