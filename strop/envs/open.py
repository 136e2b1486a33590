"""The `env` section → a factory of environments, one for each sample."""

import functools
from collections.abc import Callable

from strop.config.tree import Env
from strop.envs.base import Environment
from strop.errors import PluginError
from strop.plugins import check_methods, check_options, resolve, user_code

BUILTIN = {
    "calculator": "strop.envs.calculator:Calculator",
    "single_turn": "strop.envs.single_turn:SingleTurn",
}
GROUP = "strop.envs"
"""Entry points of installed packages that are environments."""


def open_env(section: Env) -> Callable[[], Environment]:
    """Makes one environment a call. Raises PluginError if it cannot.

    One is made here and thrown away unstarted, to see that the options suit it and that it has the methods
    of the seam: an environment takes hold of things in `start`, not before.
    """
    made_by = resolve(section.type, key="env.type", names=BUILTIN, group=GROUP)
    check_options(made_by, section.options, key="env.options")
    factory = functools.partial(made_by, **section.options)
    with user_code(PluginError, f"env.type = {section.type!r}"):
        first = factory()
    check_methods(
        first, ("start", "step", "close"), key=f"env.type = {section.type!r}", seam="an Environment"
    )
    return factory
