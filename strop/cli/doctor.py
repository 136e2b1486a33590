"""`strop doctor`: the installation, a run before it begins, or a function of the user's own."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from strop.cli.arguments import Arguments, take_own, whole_number
from strop.config.flags import split_arguments
from strop.config.load import load_config
from strop.errors import ConfigError
from strop.finding import Finding, Level

if TYPE_CHECKING:
    from strop.preflight import Prepared

_FLAGS = ("--n", "--as", "--options", "--label")
_GROUPS = 8
_RUN_FILES = (".toml", ".yaml", ".yml")
USAGE = """strop doctor                                       is strop installed well; what has this machine
strop doctor RUN.toml [--section.key value …]      model, template, data, environment, and the reward of
                      [--n 8]                      n groups that the model plays as it is
strop doctor my_rewards.py:exact [--as SEAM]       does a function keep to its seam: reward, group_reward,
             [--options '{…}'] [--label JSON]      env, keep, generate, prompts

Every line is ok, warn or fail; the exit code is 1 if one is fail. Nothing is written, no run is begun."""


def main(argv: list[str]) -> int:
    """The exit code; raises InputError when the run could not begin."""
    if "--help" in argv or "-h" in argv:
        print(USAGE)
        return 0
    own, rest = take_own(argv, "strop doctor", flags=_FLAGS)
    if not rest:
        _refuse(own, "--n", "--as", "--options", "--label", of="the installation")
        from strop.doctor.install import install_findings

        return _print(install_findings(os.environ))
    if len(rest) == 1 and ":" in rest[0] and not rest[0].endswith(_RUN_FILES):
        _refuse(own, "--n", of="a function")
        from strop.doctor.functions import function_findings

        options, label = own.one("--options"), own.one("--label")
        return _print(function_findings(rest[0], seam=own.one("--as"), options=options, label=label))
    _refuse(own, "--as", "--options", "--label", of="a run")
    return _run(rest, whole_number("--n", own.one("--n") or str(_GROUPS), least=1))


def _refuse(own: Arguments, *flags: str, of: str) -> None:
    for flag in flags:
        if own.values[flag]:
            raise ConfigError(f"{flag}: is not for {of}; see strop doctor --help")


def _run(argv: list[str], n: int) -> int:
    files, flags = split_arguments(argv)
    config = load_config(files, flags, also=_FLAGS).config
    from strop.preflight import prepare
    from strop.telemetry.open import check_sinks

    check_sinks(config.telemetry)
    prepared = prepare(config)
    return _print(_run_findings(prepared, n) if prepared.rows is None else _row_findings(prepared))


def _row_findings(prepared: "Prepared") -> "Iterator[Finding]":
    """Of a run on rows that hold what is trained: nothing is played."""
    from strop.doctor.run_parts import model_findings, row_findings, template_findings

    yield from model_findings(prepared)
    yield from template_findings(prepared, has_turns=False)
    yield from row_findings(prepared)


def _run_findings(prepared: "Prepared", n: int) -> "Iterator[Finding | str]":
    """Findings, and lines between them."""
    from strop.doctor.rollouts import histogram, is_scored, play, rollout_findings
    from strop.doctor.run_parts import data_findings, environment_findings, model_findings, template_findings
    from strop.doctor.scoring import scoring_findings
    from strop.preflight import has_turns

    yield from model_findings(prepared)
    yield from template_findings(prepared, has_turns=has_turns(prepared.config))
    yield from data_findings(prepared)
    yield from environment_findings(prepared)
    played = play(prepared, n, _progress(n))
    yield from rollout_findings(prepared, played)
    if played.rewards:
        yield from histogram(played.rewards)
    if is_scored(prepared):
        yield from scoring_findings(prepared, played.groups)
    else:
        yield Finding(
            Level.OK, "reward", "an environment or generate function of your own may give it: not tried"
        )


def _progress(n: int) -> Callable[[int], None]:
    """Tells a terminal how far it is; nothing elsewhere."""

    def show(done: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done}/{n} groups", end="\r" if done < n else "\r\033[K", file=sys.stderr, flush=True)

    return show


def _print(findings: "Iterable[Finding | str]") -> int:
    worst, warned = Level.OK, 0
    for found in findings:
        print(found if isinstance(found, str) else found.line, flush=True)
        if isinstance(found, Finding):
            warned += found.level is Level.WARN
            worst = Level.FAIL if Level.FAIL in (worst, found.level) else worst
    warnings = f", {warned} warning{'s' * (warned > 1)}" if warned else ""
    print("\nfail: see above" if worst is Level.FAIL else f"\nok{warnings}")
    return 1 if worst is Level.FAIL else 0
