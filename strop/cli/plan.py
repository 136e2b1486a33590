"""`strop plan RUN.toml`: what a run will take of this machine, before it begins."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strop.cli.arguments import Arguments, take_own
from strop.config.flags import split_arguments
from strop.config.load import load_config
from strop.config.offline_rules import is_offline
from strop.config.tree import Config
from strop.errors import ConfigError

if TYPE_CHECKING:
    from strop.forecast.forecast import Forecast
    from strop.forecast.memory import Base
    from strop.forecast.timing import Times
    from strop.preflight import Prepared
    from strop.runtime.memory import MachineMemory

_FLAGS, _SWITCHES = ("--measured", "--memory-gib"), ("--json", "--no-probe")
USAGE = """strop plan RUN.toml [MORE.toml …] [--section.key value …]
           [--no-probe] [--json] [--measured RUN] [--memory-gib N]

Batch, layout, memory at every moment, time a step and in all. Nothing is written, no run is begun.
--no-probe      do not draw and train a little to see how long a step takes
--json          as one JSON object
--measured RUN  responses are as long as in that run directory; else as long as they may be
--memory-gib N  as if this machine had N GiB
Exit code 1 if it does not fit."""


def main(argv: list[str]) -> int:
    """The exit code; raises InputError when the run could not begin."""
    if not argv or "--help" in argv or "-h" in argv:
        print(USAGE)
        return 0
    own, rest = take_own(argv, "strop plan", flags=_FLAGS, switches=_SWITCHES)
    files, flags = split_arguments(rest)
    config = load_config(files, flags, also=(*_FLAGS, *_SWITCHES)).config
    response = _response(own.one("--measured"))
    total = _total(own.one("--memory-gib"))
    if is_offline(config):
        _check_rows(own)
    prepared, base = _prepare(config)
    if prepared.rows is not None:
        print(_of_rows(prepared, as_json="--json" in own.switches))
        return 0
    from strop.forecast.forecast import forecast, way_out
    from strop.forecast.report import report
    from strop.runtime.machine import Machine

    found = forecast(prepared, base, _machine(total), response=response)
    times, untimed = _times(found, own)
    advice = "" if found.fits else way_out(found, base)
    if "--json" in own.switches:
        print(json.dumps(_as_json(found, times, advice), indent=2))
    else:
        print("\n".join(report(found, Machine.here(), times, untimed)))
        if advice:
            print(f"advice    {advice}")
    return 0 if found.fits else 1


def _check_rows(own: Arguments) -> None:
    for flag in _FLAGS:
        if own.one(flag) is not None:
            raise ConfigError(f"{flag}: neither memory nor time is forecast for runs on rows; leave it out")


def _of_rows(prepared: "Prepared", *, as_json: bool) -> str:
    """What is known of a run on rows that hold what is trained; its memory and time are not forecast."""
    from strop.offline.facts import row_facts

    assert prepared.rows is not None
    plan, facts = prepared.plan, row_facts(prepared.source, prepared.rows)
    if as_json:
        return json.dumps(
            {"plan": plan.as_json(), "rows": asdict(facts), "memory": None, "time": None}, indent=2
        )
    steps, config = prepared.config.loop.steps, prepared.config
    epochs = steps * plan.groups_per_step / max(facts.rows, 1)
    each = plan.groups_per_step / plan.num_updates
    return "\n".join(
        (
            f"{config.name}: {config.model}, {config.algo.type}",
            "",
            f"rows      {facts.said}",
            f"batch     {plan.groups_per_step} rows a step = {plan.num_updates} × {each:g} an update",
            f"steps     {steps}: {plan.total_updates} updates, {epochs:.3g} epochs",
            "engine    none: nothing is played",
            "memory    not forecast for runs on rows",
            "time      not forecast for runs on rows",
        )
    )


def _prepare(config: Config) -> "tuple[Prepared, Base]":
    """Everything that a run checks before it begins, and what that took of memory."""
    from strop.forecast.memory import Base
    from strop.preflight import prepare
    from strop.runtime.memory import resident_bytes
    from strop.telemetry.open import check_sinks

    check_sinks(config.telemetry)
    import strop.run  # noqa: F401 - what a run imports is what its memory begins with

    libraries = resident_bytes()
    prepared = prepare(config)
    return prepared, Base(libraries, max(0, resident_bytes() - libraries))


def _response(run: str | None) -> float | None:
    if run is None:
        return None
    from strop.store.layout import check_is_run
    from strop.store.reader import RunReader

    check_is_run(Path(run), what=f"--measured {run}", way_out="name the directory of a run")
    lengths = [record["rollout/response_tokens"] for record in RunReader(Path(run)).metrics()]
    if not lengths:
        raise ConfigError(f"--measured {run}: has no steps yet; name a run with at least one")
    return float(max(lengths))


def _total(given: str | None) -> int | None:
    if given is None:
        return None
    try:
        gib = float(given)
    except ValueError:
        gib = 0.0
    if not 0 < gib < 1e6:
        raise ConfigError(f"--memory-gib: expected a number of GiB, got {given}")
    return int(gib * 2**30)


def _machine(total: int | None) -> "MachineMemory":
    from strop.runtime.memory import MachineMemory

    return MachineMemory.here() if total is None else MachineMemory(total, total)


def _times(found: "Forecast", own: Arguments) -> "tuple[Times | None, str]":
    """The times, or why there are none."""
    from strop.runtime.memory import MachineMemory

    if "--no-probe" in own.switches:
        return None, "not measured: --no-probe"
    if found.memory.peak.size > MachineMemory.here().available:
        return None, "not measured: there is not enough memory free to try it"
    from strop.forecast.forecast import first_prompts
    from strop.forecast.timing import measure

    prompts = first_prompts(found.prepared)[: found.prepared.config.rollout.batch_size]
    return found.times(measure(found.prepared, found.lengths, found.load, prompts)), ""


def _as_json(found: "Forecast", times: "Times | None", advice: str) -> dict[str, Any]:
    return {**found.as_json(), "time": times.as_json() if times else None, "advice": advice or None}
