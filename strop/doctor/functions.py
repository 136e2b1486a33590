"""Which seam a function of the user's own fits, and its contract tried out: `strop doctor mine.py:exact`."""

import inspect
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from strop.doctor.seams_that_credit import advantage_findings, policy_loss_findings
from strop.doctor.seams_that_judge import keep_findings, reward_findings
from strop.doctor.seams_that_play import env_findings, generate_findings, prompts_findings
from strop.errors import ConfigError, InputError, PluginError
from strop.finding import Finding, Level
from strop.plugins import is_async, nearest, resolve

_LABEL = 42
"""Unless told otherwise."""

Check = Callable[[str, Mapping[str, Any], Any], Iterator[Finding]]
"""(spec, options, label) → findings"""

SEAMS: Mapping[str, Check] = {
    "reward": lambda spec, options, label: reward_findings(spec, options, label, is_group=False),
    "group_reward": lambda spec, options, label: reward_findings(spec, options, label, is_group=True),
    "env": env_findings,
    "keep": lambda spec, _options, _label: keep_findings(spec),
    "generate": lambda spec, _options, label: generate_findings(spec, label),
    "prompts": lambda spec, options, _label: prompts_findings(spec, options),
    "advantage": lambda spec, _options, _label: advantage_findings(spec),
    "policy_loss": lambda spec, _options, _label: policy_loss_findings(spec),
}
_BY_FIRST = {
    "rng": "prompts",
    "group": "keep",
    "samples": "group_reward",
    "batch": "advantage",
    "inputs": "policy_loss",
}
"""What the first parameter is called, as in the documentation of each seam."""


def function_findings(
    spec: str, *, seam: str | None, options: str | None, label: str | None
) -> Iterator[Finding]:
    """`seam`: one of `SEAMS`, or None to tell it from what the function takes; `options`: a TOML table;
    `label`: of the samples that it is tried on, as JSON. Raises InputError if it cannot be found."""
    target = resolve(spec, key="strop doctor", names={}, group="strop")
    if seam is not None and seam not in SEAMS:
        raise ConfigError(f"--as {seam}: no such seam{nearest(seam, SEAMS)}; one of {', '.join(SEAMS)}")
    told = "" if seam else "; --as SEAM if it is another"
    chosen = seam or seam_of(target, spec)
    yield Finding(Level.OK, "seam", f"{spec}: {chosen}{told}")
    try:
        yield from SEAMS[chosen](spec, _options(options), _label(label))
    except PluginError as wrong:  # of the wrong shape: told as a finding, since that is what was asked
        yield Finding(Level.FAIL, chosen, str(wrong))


def seam_of(target: Callable[..., Any], spec: str) -> str:
    """By the methods of a class, by `async` with two parameters, by the first one's name; else a reward."""
    if isinstance(target, type):
        methods = {name for name, _ in inspect.getmembers(target, callable)}
        return "env" if {"start", "step"} <= methods else "reward"
    try:
        takes = [p.name for p in inspect.signature(target).parameters.values() if p.default is p.empty]
    except ValueError as caught:
        raise PluginError(f"strop doctor {spec}: does not tell what it takes; wrap it in a def") from caught
    if takes[:1] == ["args"]:
        raise InputError(
            f"strop doctor {spec}: takes `args` first, as functions written for slime do; name it with "
            "slime's flag in a run, and check the run: strop doctor RUN.toml"
        )
    if is_async(target) and len(takes) == 2:
        return "generate"
    return _BY_FIRST.get(takes[0] if takes else "", "reward")


def _options(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        options = tomllib.loads(f"options = {text}")["options"]
    except tomllib.TOMLDecodeError as caught:
        raise ConfigError(f"--options: not a table of TOML, such as '{{ scale = 2 }}': {caught}") from caught
    if not isinstance(options, dict):
        raise ConfigError(f"--options: expected a table, such as '{{ scale = 2 }}', got {text}")
    return options


def _label(text: str | None) -> Any:
    if text is None:
        return _LABEL
    try:
        return json.loads(text)
    except json.JSONDecodeError as caught:
        raise ConfigError(f"--label: not JSON (text needs quotes within, '\"blue\"'): {text}") from caught
