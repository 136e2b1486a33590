"""The `reward` section → a `Scorer`, its function found and its options checked."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from strop.config.tree import Reward
from strop.errors import PluginError
from strop.plugins import check_options, resolve, user_code
from strop.rewards.call import Scorer

BUILTIN = {
    "exact": "strop.rewards.rules:exact",
    "first_number": "strop.rewards.rules:first_number",
    "format": "strop.rewards.rules:Format",
    "regex": "strop.rewards.rules:Regex",
}
GROUP = "strop.rewards"
"""Entry points of installed packages that are rewards."""


def open_reward(section: Reward) -> Scorer:
    """What scores the samples of a run. A class is made once, with the options, and called with each sample;
    a function is called with the sample and the options. Raises PluginError."""
    fn = resolve(section.fn, key="reward.fn", names=BUILTIN, group=GROUP)
    return Scorer(
        bind(fn, section.options, key="reward.options"),
        name=section.fn,
        timeout_s=section.timeout_s,
        retries=section.retries,
        concurrency=section.concurrency,
    )


def bind(fn: Callable[..., Any], options: Mapping[str, Any], *, key: str) -> Callable[..., Any]:
    """The reward with its options in it: a callable that takes a sample alone."""
    if not isinstance(fn, type):
        check_options(fn, options, key=key, num_given=1)
        return functools.partial(fn, **options)
    check_options(fn, options, key=key)
    with user_code(PluginError, key):
        made: Callable[..., Any] = fn(**options)
    if not callable(made):
        raise PluginError(
            f"{key}: a {fn.__name__} cannot be called with a sample; give it `__call__(self, sample)`"
        )
    check_options(made, {}, key=key, num_given=1)
    return made
