"""What can be wrong with the `reward` section beside its functions and their options: one line each."""

import importlib.util
from collections.abc import Iterable, Mapping
from typing import Any

from strop.config.tree import EvalSet, Reward
from strop.errors import ConfigError, MissingPackage, PluginError
from strop.plugins import nearest
from strop.rewards.builtin import BOXED, REFUSED, BuiltIn, entry_of

_MATH_NEEDS_S = 10.0


def check_single(section: Reward) -> None:
    """Of a section with `fn`. Raises PluginError."""
    entry = entry_of(section.fn)
    if entry is None:
        return
    of_groups = entry.scores_groups(section.options)
    if section.group and not of_groups:
        raise PluginError(
            f"reward.group = true: {section.fn} scores one sample at a time{_way_out(entry)}; remove it, or "
            "name a function of your own"
        )
    if of_groups and not section.group:
        raise _not_alone(section.fn, section.options, key="reward.options")
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
    of_groups = [spec for spec in section.weights if _scores_groups(spec, section.options.get(spec, {}))]
    if of_groups and not section.group:
        spec = of_groups[0]
        raise _not_alone(spec, section.options[spec], key=f"reward.options.{spec}")
    if section.group and not of_groups and all(entry_of(spec) is not None for spec in section.weights):
        raise PluginError(
            "reward.group = true: built-in rewards score one sample at a time; remove it, or put a function "
            "of your own into reward.weights"
        )


def check_own(name: str, options: Mapping[str, Any], *, where: str) -> None:
    """Of the reward that a prompt or a held-out set names. Raises PluginError."""
    if _scores_groups(name, options):
        raise PluginError(
            f"{where} = {name!r}: with {_given(name, options)} it compares the samples of a group"
        )


def check_eval_set(section: Reward, dataset: EvalSet) -> None:
    """Of a held-out set that has no reward of its own. Raises ConfigError."""
    compares = _comparing(section)
    if compares and dataset.reward is None and dataset.samples_per_prompt == 1:
        key = f"eval.datasets.{dataset.name}"
        raise ConfigError(
            f"{key}.samples_per_prompt = 1 leaves {compares[0]} nothing to compare; raise it, or give the "
            f"set a reward of its own: {key}.reward"
        )


def check_group_size(section: Reward, samples_per_prompt: int) -> None:
    """Of the groups that are trained. Raises ConfigError."""
    compares = _comparing(section)
    if compares and samples_per_prompt == 1:
        raise ConfigError(
            f"rollout.samples_per_prompt = 1 leaves {compares[0]} nothing to compare; give at least 2"
        )


def _comparing(section: Reward) -> list[str]:
    specs = {spec: section.options.get(spec, {}) for spec in section.weights} or {section.fn: section.options}
    return [spec for spec, options in specs.items() if _compares(spec, options)]


def _scores_groups(name: str, options: Mapping[str, Any]) -> bool:
    entry = entry_of(name)
    return entry is not None and entry.scores_groups(options)


def _compares(name: str, options: Mapping[str, Any]) -> bool:
    entry = entry_of(name)
    return entry is not None and entry.compares and entry.scores_groups(options)


def _not_alone(name: str, options: Mapping[str, Any], *, key: str) -> PluginError:
    given = f"{key}.{_given(name, options)}"
    return PluginError(f"{given}: {name} then compares the samples of a group; set reward.group = true")


def _given(name: str, options: Mapping[str, Any]) -> str:
    entry = entry_of(name)
    assert entry is not None
    return ", ".join(f"{option} = {options[option]!r}" for option in entry.of_groups)


def _way_out(entry: BuiltIn) -> str:
    given = ", ".join(f"{option} = {value!r}" for option, value in entry.of_groups.items())
    return f" unless reward.options has {given}" if given else ""


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
