"""A run's model, template, data and environment, as they are before anything is drawn."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from strop.config.tree import Env
from strop.doctor.episodes import gold, play_once
from strop.finding import Finding, Level
from strop.nn.loading import outline
from strop.nn.weight_files import read_object
from strop.offline.facts import row_facts
from strop.preflight import Prepared
from strop.prompts.open import look_ahead
from strop.render.probe import Concern, probe
from strop.sample import Prompt

_PROMPTS = 256
"""Of a source without end."""


def model_findings(prepared: Prepared) -> Iterator[Finding]:
    """What the model is; that its weights are whole was seen when the run was prepared."""
    path = prepared.model
    facts = read_object(path / "config.json")
    size = sum(parameter.numel() for _, parameter in outline(path).named_parameters())
    stored = facts.get("dtype") or facts.get("torch_dtype") or "unknown"
    text = f"{path}: {facts['model_type']}, {size / 1e6:,.1f}M weights, stored in {stored}, whole"
    yield Finding(Level.OK, "model", text)


def template_findings(prepared: Prepared, *, has_turns: bool) -> Iterator[Finding]:
    """What the probe finds; a warning that does not concern this run is none."""
    concerns = {Concern.EVERY, Concern.TURNS} if has_turns else {Concern.EVERY}
    for trait in probe(prepared.renderer):
        found = trait.finding
        yield found if trait.concern in concerns else Finding(Level.OK, found.about, found.text)


def data_findings(prepared: Prepared) -> Iterator[Finding]:
    """Rows, lengths, labels, twins, and held-out prompts that are trained on."""
    source = prepared.source
    prompts = look_ahead(source, _PROMPTS)
    of = f"{len(prompts)} prompts" if len(source) else f"made as needed; the first {len(prompts)}"
    yield Finding(Level.OK, "prompts", f"{of}: {_lengths(prepared, prompts)}; {_labels(prompts)}")
    bad = prepared.bad_rows
    if bad.count:
        yield Finding(Level.WARN, "rows", f"{bad.count} malformed rows are left out; the first: {bad.first}")
    if prepared.num_too_long:
        most = prepared.config.prompts.max_tokens
        yield Finding(Level.OK, "rows", f"{prepared.num_too_long} longer than {most} tokens are left out")
    twins = sum(count - 1 for count in Counter(map(_content, prompts)).values())
    if twins and len(source):
        yield Finding(Level.WARN, "twins", f"{twins} prompts are there more than once: they weigh more")
    seen = set(map(_content, prompts))
    for name, held_out in prepared.eval_sets.items():
        also = sum(_content(prompt) in seen for prompt in held_out)
        text = f"{len(held_out)} prompts: {_lengths(prepared, held_out)}; {_labels(held_out)}"
        yield Finding(Level.OK, f"eval {name}", text)
        if also:
            leak = (
                f"{also} of {len(held_out)} held-out prompts are trained on: figures of {name} will flatter"
            )
            yield Finding(Level.WARN, f"eval {name}", leak)


def row_findings(prepared: Prepared) -> Iterator[Finding]:
    """Rows that hold what is trained: how many, how long, what is left out or cut; and the held-out ones."""
    rows = prepared.rows
    assert rows is not None, "asked of runs on rows alone"
    yield Finding(Level.OK, "rows", row_facts(prepared.source, rows).said)
    bad = prepared.bad_rows
    if bad.count:
        yield Finding(Level.WARN, "rows", f"{bad.count} malformed rows are left out; the first: {bad.first}")
    for number, done in ((prepared.num_too_long, "are left out"), (prepared.num_cut, "are cut at their end")):
        if number:
            yield Finding(Level.WARN, "rows", f"{number} longer than {rows.limit} tokens {done}")
    seen = {repr((row.messages, row.label)) for row in look_ahead(prepared.source, 0)}
    for name, held_out in prepared.eval_sets.items():
        also = sum(repr((row.messages, row.label)) in seen for row in held_out)
        level = Level.WARN if also else Level.OK
        leak = f"; {also} of them are trained on: figures of {name} will flatter" * bool(also)
        yield Finding(level, f"eval {name}", f"{len(held_out)} rows{leak}")
    text = "rows hold what is trained: neither engine, environment nor reward has a part in it"
    yield Finding(Level.OK, "rollout", text)


def environment_findings(prepared: Prepared) -> Iterator[Finding]:
    """Two episodes of the first prompt: with an empty reply, and with the label as the reply."""
    section = prepared.config.env
    if section.type == "single_turn" or prepared.generate is not None:
        yield Finding(Level.OK, "environment", _unplayed(section, is_replaced=prepared.generate is not None))
        return
    (prompt,) = look_ahead(prepared.source, 1)[:1]
    for name, text in (("an empty reply", ""), ("the label", gold(prompt))):
        began = time.perf_counter()
        episode = play_once(
            prepared.make_env, prompt, text, max_turns=section.max_turns, timeout_s=section.timeout_s
        )
        outcome = asyncio.run(episode)
        seconds = time.perf_counter() - began
        level = Level.OK if outcome.error is None else Level.FAIL
        yield Finding(level, "environment", f"{name}: {outcome.error or outcome.said} ({seconds:.2g} s)")


def _unplayed(section: Env, *, is_replaced: bool) -> str:
    return "rollout.generate plays in its place" if is_replaced else f"{section.type}: one prompt, one reply"


def _content(prompt: Prompt) -> str:
    return repr(prompt.messages)


def _lengths(prepared: Prepared, prompts: Sequence[Prompt]) -> str:
    lengths = sorted(len(prepared.renderer.prompt(prompt)) for prompt in prompts)
    middle, high = (lengths[math.ceil(share * len(lengths)) - 1] for share in (0.5, 0.95))
    return f"{lengths[0]}–{lengths[-1]} tokens, half up to {middle}, 95 % up to {high}"


def _labels(prompts: Sequence[Prompt]) -> str:
    labelled = sum(prompt.label is not None for prompt in prompts)
    if labelled == len(prompts):
        return "all have a label"
    return f"{labelled} have a label" if labelled else "none has a label"
