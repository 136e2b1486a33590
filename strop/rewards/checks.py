"""What can be wrong with the `reward` section beside its functions and their options: one line each."""

import importlib.util
from collections.abc import Iterable

from strop.config.tree import Reward
from strop.errors import MissingPackage, PluginError
from strop.plugins import nearest
from strop.rewards.builtin import BOXED, REFUSED, entry_of

_MATH_NEEDS_S = 10.0


def check_single(section: Reward) -> None:
    """Of a section with `fn`. Raises PluginError."""
    entry = entry_of(section.fn)
    if entry is None:
        return
    if section.group:
        raise PluginError(
            f"reward.group = true: {section.fn} scores one sample at a time; remove it, or name a function "
            "of your own"
        )
    if section.score_key is not None and not entry.gives_table:
        raise PluginError(
            f"reward.score_key = {section.score_key!r}: {section.fn} gives a number, not a table of scores; "
            "remove it"
        )


def check_weights(section: Reward) -> None:
    """Of a section with `weights`. Raises PluginError."""
    _check_names(section.weights)
    for spec, options in section.options.items():
        if spec not in section.weights:
            hint = nearest(spec, section.weights) or f"; there are {', '.join(section.weights)}"
            raise PluginError(f"reward.options.{spec}: no such name in reward.weights{hint}")
        if not isinstance(options, dict):
            raise PluginError(f"reward.options.{spec} = {options!r}: expected a table of options")
    if section.group and all(entry_of(spec) is not None for spec in section.weights):
        raise PluginError(
            "reward.group = true: built-in rewards score one sample at a time; remove it, or put a function "
            "of your own into reward.weights"
        )


def check_entry(name: str, section: Reward, *, where: str) -> None:
    """Of one named reward. Raises PluginError, MissingPackage."""
    plain, entry = name.removeprefix(BOXED), entry_of(name)
    if plain in REFUSED:
        raise PluginError(f"{where}: not built in: {REFUSED[plain]}")
    if entry is None:
        return
    if plain != name and not entry.can_be_boxed:
        raise PluginError(f"{where}: {plain} has no boxed form; name {plain!r}")
    if entry.needs_math:
        _check_math(name, section, where=where)


def recorded_as(spec: str) -> str:
    """The name under which a reward is recorded: of `my_rewards.py:brevity`, `brevity`."""
    return spec.rpartition(":")[2]


def _check_math(name: str, section: Reward, *, where: str) -> None:
    if importlib.util.find_spec("math_verify") is None:
        raise MissingPackage(f"{where} needs math-verify: pip install 'strop[math]'")
    if section.timeout_s < _MATH_NEEDS_S:
        raise PluginError(
            f"reward.timeout_s = {section.timeout_s:g}: {name} starts processes and bounds each comparison "
            f"itself; give it at least {_MATH_NEEDS_S:g}"
        )


def _check_names(weights: Iterable[str]) -> None:
    seen: dict[str, str] = {}
    for spec in weights:
        name = recorded_as(spec)
        if name in seen:
            raise PluginError(
                f"reward.weights: {seen[name]!r} and {spec!r} would both be recorded as {name!r}; rename one"
            )
        seen[name] = spec
