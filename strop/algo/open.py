"""From the `algo` section to an algorithm."""

from strop.algo.base import Algorithm
from strop.algo.policy import PolicyGradient
from strop.config.algo import Algo


def open_algorithm(section: Algo, *, num_updates: int) -> Algorithm:
    """The algorithm of `algo.type` for a step of `num_updates` optimizer updates. Raises PluginError for a
    function of the user's that cannot be found."""
    return PolicyGradient(section, num_updates=num_updates)
