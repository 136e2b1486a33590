"""A forecast as lines for a person."""

from collections.abc import Iterator

from strop.config.tree import Config
from strop.forecast.forecast import Forecast
from strop.forecast.memory import MIB
from strop.forecast.timing import Times
from strop.runtime.machine import Machine
from strop.runtime.memory import GIB


def report(found: Forecast, machine: Machine, times: Times | None, untimed: str) -> list[str]:
    """All of it. `untimed`: why there are no times."""
    config = found.prepared.config
    lines = [
        f"{config.name}: {config.model}, {found.shape.weights / 1e6:,.1f}M weights, on {machine.processor}",
        "",
        *_batch(found),
        *_layout(config, found),
        "",
        *_memory(found),
        "",
    ]
    return [*lines, *(_time(found, times) if times else [_row("time", untimed)])]


def _row(name: str, text: str) -> str:
    return f"{name:<10}{text}"


def _batch(found: Forecast) -> Iterator[str]:
    plan, config = found.prepared.plan, found.prepared.config
    prompts, size = plan.groups_per_step, config.rollout.samples_per_prompt
    updates, steps = plan.num_updates, config.loop.steps
    each = plan.samples_per_step / updates
    a_step = f"{prompts} prompts × {size} samples = {plan.samples_per_step} a step"
    surplus = config.rollout.over_sample
    more = f"; {surplus} more prompts are played for it" if surplus else ""
    yield _row("batch", f"{a_step} = {updates} × {each:g} an update{more}")
    rows, drawn = len(found.prepared.source), steps * (prompts + surplus)
    epochs = f", {drawn / rows:.3g} epochs of {rows} rows" if rows else ", made as they are needed"
    least = "at least " if config.rollout.keep else ""
    yield _row("steps", f"{steps}: {plan.total_updates} updates, {least}{drawn} prompts{epochs}")


def _layout(config: Config, found: Forecast) -> Iterator[str]:
    shares = config.engine.dtype == "float32" and not config.train.lora.rank
    weights = "the trainer's weights" if shares else "a copy of the weights"
    rows = f"{found.load.rollout.rows} sequences at once"
    yield _row("engine", f"{config.engine.backend}, {config.engine.dtype}, {weights}; {rows}")
    trained = f"adapters of rank {config.train.lora.rank}" if config.train.lora.rank else "all weights"
    tokens = f"{found.load.update_tokens:,} tokens an update in {found.load.num_micro} micro-batches"
    threads = f"{found.prepared.plan.threads} threads"
    yield _row("trainer", f"{config.train.backend}, {config.train.dtype}, {trained}; {tokens}; {threads}")
    lengths = found.lengths
    shortest, longest = min(lengths.prompts), max(lengths.prompts)
    known = "as measured" if lengths.is_measured else "the most allowed; --measured RUN for a run's own"
    yield _row("tokens", f"prompts {shortest}–{longest}, responses {lengths.response:g} ({known})")


def _memory(found: Forecast) -> Iterator[str]:
    yield "memory"
    for part in found.memory.parts:
        yield f"  {part.name:<18}{part.size / MIB:>9,.1f} MiB  {part.how}"
    for moment in found.memory.moments:
        mark = "  ← the peak" if moment == found.memory.peak else ""
        yield f"  {'at ' + moment.name:<34}{moment.size / GIB:>5.2f} GiB{mark}"
    total, free = found.machine.total / GIB, found.machine.available / GIB
    verdict = "fits" if found.fits else "does not fit"
    yield f"  needs {found.memory.peak.size / GIB:.2f} of {total:.1f} GiB ({free:.1f} free now): {verdict}"


def _time(found: Forecast, times: Times) -> Iterator[str]:
    bound = "" if found.lengths.is_measured else "at most, as responses are taken at their longest: "
    rollout, train = clock(times.rollout_s), clock(times.train_s)
    yield _row("step", f"{bound}{clock(times.step_s)} (rollout {rollout}, training {train}), rewards aside")
    evals = f" and {times.num_evals} evaluations of {clock(times.eval_s)}" if times.num_evals else ""
    yield _row("run", f"{times.steps} steps{evals}: {clock(times.total_s)}")


def clock(seconds: float) -> str:
    """Two units at most.

    >>> clock(0.25), clock(75), clock(3 * 3600 + 61), clock(100_000)
    ('0.25 s', '1 min 15 s', '3 h 1 min', '1 d 3 h')
    """
    if seconds < 60:
        return f"{seconds:.3g} s"
    for unit, smaller, size, of in (("min", "s", 60, 60), ("h", "min", 3600, 24)):
        if seconds < size * of:
            return f"{int(seconds // size)} {unit} {int(seconds % size // (size // 60))} {smaller}"
    return f"{int(seconds // 86400)} d {int(seconds % 86400 // 3600)} h"
