"""From the `algo` section to an algorithm."""

from strop.algo.base import Algorithm
from strop.algo.marked import Marked
from strop.algo.pairs import Pairs
from strop.algo.policy import PolicyGradient
from strop.algo.supervised import Supervised
from strop.config.algo import Algo
from strop.config.offline import SHAPES

Given = Supervised | Pairs | Marked
"""Algorithms that learn from rows instead of rollouts."""


def open_algorithm(section: Algo, *, num_updates: int) -> Algorithm:
    """The algorithm of `algo.objective` for a step of `num_updates` optimizer updates. Raises PluginError for
    a function of the user's that cannot be found."""
    if section.objective == "reward":
        return PolicyGradient(section, num_updates=num_updates)
    return open_given(section)


def open_given(section: Algo) -> Given:
    """The algorithm of an objective whose groups are rows of data."""
    match SHAPES[section.objective]:
        case "texts":
            return Supervised(section)
        case "pairs":
            return Pairs(section)
        case "marked":
            return Marked(section)
        case "ranked" | "scored":
            raise AssertionError("a reward model has a trainer of its own")
