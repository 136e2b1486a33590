"""The `reward` section → `Rewards`, its functions found and their options checked."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from strop.config.tree import Reward
from strop.errors import PluginError
from strop.plugins import check_options, resolve, user_code
from strop.rewards.call import Scorer
from strop.rewards.select import OWN, Rewards

BUILTIN = {
    "exact": "strop.rewards.rules:exact",
    "first_number": "strop.rewards.rules:first_number",
    "format": "strop.rewards.rules:Format",
    "regex": "strop.rewards.rules:Regex",
}
GROUP = "strop.rewards"
"""Entry points of installed packages that are rewards."""


def open_rewards(section: Reward, *, overrides: Iterable[str] = ()) -> Rewards:
    """What scores the samples of a run. A class is made once, with the options, and called with each sample;
    a function is called with the sample and the options. `overrides`: rewards that prompts name as their own;
    they take no options. Raises PluginError."""
    opener = _Opener(section)
    rewards = Rewards(opener.main(), is_group=section.group, open_one=opener.own)
    for name in overrides:
        rewards.require(name, where=OWN)
    return rewards


class _Opener:
    def __init__(self, section: Reward) -> None:
        self._section = section

    def main(self) -> Scorer:
        fn = resolve(self._section.fn, key="reward.fn", names=BUILTIN, group=GROUP)
        return self._scorer(bind(fn, self._section.options, key="reward.options"), name=self._section.fn)

    def own(self, name: str, where: str) -> Scorer:
        fn = resolve(name, key=where, names=BUILTIN, group=GROUP)
        return self._scorer(bind(fn, {}, key=f"{where} = {name!r}"), name=name)

    def _scorer(self, fn: Callable[..., Any], *, name: str) -> Scorer:
        return Scorer(
            fn,
            name=name,
            timeout_s=self._section.timeout_s,
            retries=self._section.retries,
            concurrency=self._section.concurrency,
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
