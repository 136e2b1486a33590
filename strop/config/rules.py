"""What must hold between keys, checked once, before anything is built.

A rule is a function from the config and the origins to its complaints; none: it holds.
"""

from collections.abc import Callable, Iterator

from strop.config import algo_rules, offline_rules, teacher_rules
from strop.config.idle import Idle
from strop.config.presets import is_given
from strop.config.slime_paths import is_slimes
from strop.config.toml_text import shown
from strop.config.tree import Config, EvalSet, Part, Prompts
from strop.config.view import View
from strop.errors import ConfigError

CACHE_STEP = 16
"""The local engine's cache takes sequences in steps of so many tokens; see `engines/local/capacity.py`."""


def check(config: Config, origins: dict[str, str]) -> None:
    """Raises `ConfigError` with the first rule that is broken, and the number of the others."""
    view = View(config, origins)
    broken = [complaint for rule in RULES for complaint in rule(view)]
    if broken:
        more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        raise ConfigError(broken[0] + more)


def batch_size(config: Config) -> int:
    """Samples an update: `train.batch_size`, or what the batch identity makes it when it is unset."""
    samples = config.rollout.batch_size * config.rollout.samples_per_prompt
    return config.train.batch_size or samples // config.train.updates_per_step


def idle_keys(config: Config) -> dict[str, str]:
    """Keys that do nothing in this configuration → the key that makes them so."""
    return {key: idle.cause for idle in _IDLE if idle.holds(config) for key in idle.keys}


def with_batch_size(config: Config) -> Config:
    """The same config with `train.batch_size` filled in."""
    train = config.train.model_copy(update={"batch_size": batch_size(config)})
    return config.model_copy(update={"train": train})


def _batch_identity(view: View) -> Iterator[str]:
    rollout, train = view.config.rollout, view.config.train
    samples = rollout.batch_size * rollout.samples_per_prompt
    factors = f"{view.said('rollout.batch_size')} × {view.said('rollout.samples_per_prompt')}"
    made = f"{factors} = {samples} samples a step"
    keys = ("train.batch_size", "train.updates_per_step", "rollout.batch_size", "rollout.samples_per_prompt")
    if train.batch_size is None and samples % train.updates_per_step:
        updates = view.said("train.updates_per_step")
        yield f"{view.at(*keys[1:])}: {made} cannot be divided by {updates}; make it a multiple"
    elif train.batch_size and train.batch_size * train.updates_per_step != samples:
        used = f"{view.said('train.batch_size')} × {view.said('train.updates_per_step')}"
        way_out = "remove train.batch_size"
        if samples % train.updates_per_step == 0:
            way_out = f"set train.batch_size = {samples // train.updates_per_step}"
        yield f"{view.at(*keys)}: {made}, but {used} = {train.batch_size * train.updates_per_step}; {way_out}"


def _synchronous(view: View) -> Iterator[str]:
    key = "buffer.staleness"
    if view.value(key):
        yield f"{view.at(key)}: {key} = {view.value(key)} is not supported yet; remove it: 0 is synchronous"


def _one_source_of_prompts(view: View) -> Iterator[str]:
    if view.config.prompts.mixture:
        yield from _parts_of_a_mixture(view)
    elif _has_prompts(view.config.prompts) or view.config.loop.steps:
        yield from _files_or_source(view, "prompts", view.config.prompts)
    elif not view.config.eval.datasets:
        yield (
            f"{view.at('loop.steps')}: {view.said('loop.steps')} without prompts and without eval.datasets "
            "leaves nothing to do; add --eval-prompt-data NAME PATH or an [[eval.datasets]] table"
        )
    for number, dataset in enumerate(view.config.eval.datasets):
        where = f"eval.datasets.{number}"
        yield from _files_or_source(view, where, dataset)
        if dataset.source and dataset.n is None:
            source = f"{where}.source"
            yield f"{view.at(source)}: {view.said(source)} has no end; say how many prompts: {where}.n = 256"


def _has_prompts(prompts: Prompts) -> bool:
    return any((prompts.files, prompts.source, prompts.options))


def _parts_of_a_mixture(view: View) -> Iterator[str]:
    mixture = f"prompts.mixture ({view.origin('prompts.mixture')})"
    for key in ("prompts.files", "prompts.source", "prompts.options"):
        if view.value(key):
            given = f"{key} = {shown(view.value(key))} ({view.origin(key)})"
            yield f"{view.at(key)}: {given} and {mixture} exclude each other; remove one"
    seen: dict[str, str] = {}
    for number, part in enumerate(view.config.prompts.mixture):
        key = f"prompts.mixture.{number}.name"
        if part.name in seen:
            first = view.said(seen[part.name])
            yield f"{view.at(key)}: {key} = {shown(part.name)} is taken: {first}; names must differ"
        seen.setdefault(part.name, key)
        yield from _files_or_source(view, f"prompts.mixture.{number}", part)


def _files_or_source(view: View, where: str, section: Prompts | EvalSet | Part) -> Iterator[str]:
    files, source, options = (f"{where}.{key}" for key in ("files", "source", "options"))
    if section.files and section.source and not is_slimes(section.source):
        yield f"{view.at(files)}: {view.said(files)} and {view.said(source)} exclude each other; remove one"
    elif not section.files and not section.source:
        way_out = f'give {files} = ["data.jsonl"] or {source} = "file.py:name"'
        place = view.at(files) if isinstance(section, Prompts) else view.at(f"{where}.name", files)
        yield f"{place}: {where} has no prompts: {files} is empty and {source} is unset; {way_out}"
    elif section.options and not section.source:
        given = f"{options} = {shown(section.options)}"
        yield f"{view.at(options)}: {given} needs {source}; remove it, or name a source"


def _only_files_have_fields(view: View) -> Iterator[str]:
    names = {
        "eval.datasets": ("input_key", "label_key", "tool_key"),
        "prompts.mixture": ("input_key", "label_key"),
    }
    for section in names:
        for number, row in enumerate(view.value(section)):
            for key in (f"{section}.{number}.{name}" for name in names[section]):
                if row.source and view.value(key) is not None:
                    source = view.said(f"{section}.{number}.source")
                    yield f"{view.at(key)}: {view.said(key)} has no effect with {source}; remove one"


def _template_has_a_place(view: View) -> Iterator[str]:
    key, place = "prompts.template", "{prompt}"
    if place not in (view.value(key) or place):
        yield f"{view.at(key)}: {view.said(key)} has no {place}, where the text of a row goes; add it"


def _eval_names(view: View) -> Iterator[str]:
    """Each names a directory, beside the log of results; some file systems do not tell case apart."""
    seen: dict[str, str] = {}
    for number, dataset in enumerate(view.config.eval.datasets):
        key, name = f"eval.datasets.{number}.name", dataset.name.lower()
        if name in seen:
            first = view.said(seen[name])
            yield f"{view.at(key)}: {key} = {shown(dataset.name)} is taken: {first}; names must differ"
        if name == "results.jsonl":
            yield f"{view.at(key)}: {key} = {shown(dataset.name)} is the log of all results; choose another"
        seen.setdefault(name, key)


def _eval_needs_datasets(view: View) -> Iterator[str]:
    if view.config.eval.every and not view.config.eval.datasets:
        given = f"eval.every = {view.config.eval.every}"
        yield f"{view.at('eval.every')}: {given} needs data sets; add an [[eval.datasets]] table or remove it"


def _cache_holds_a_response(view: View) -> Iterator[str]:
    """What the prompts add is found when they are read; a prompt has one token at least."""
    cache, response = "engine.max_tokens", "rollout.max_response_tokens"
    needed = view.value(response) + 1
    if view.value(cache) // CACHE_STEP * CACHE_STEP < needed:
        least = -(-needed // CACHE_STEP) * CACHE_STEP
        yield (
            f"{view.at(response, cache)}: {view.said(response)} does not fit into {view.said(cache)}; "
            f"raise {cache} to {least}, more for prompts of more than {least - needed + 1} tokens, or lower "
            f"{response}"
        )


def _warmup_ends(view: View) -> Iterator[str]:
    key = "train.optim.warmup"
    updates = view.config.loop.steps * view.config.train.updates_per_step
    if view.value(key) > updates:
        run = f"{view.said('loop.steps')} × {view.said('train.updates_per_step')} = {updates} updates"
        yield f"{view.at(key)}: {view.said(key)} is longer than the run: {run}; lower {key}"


def _whole_episode_is_one(view: View) -> Iterator[str]:
    generate, env = "rollout.generate", "env.type"
    if view.value(generate) and view.value(env) != "single_turn":
        yield (
            f"{view.at(generate)}: {view.said(generate)} replaces the whole episode, so {view.said(env)} "
            "would never be asked; remove one"
        )


def _makes_tasks(source: str | None) -> bool:
    """A source with slime's signature may read files, by what it finds in `args`."""
    return source is not None and not is_slimes(source)


def _makes_all_tasks(config: Config) -> bool:
    """No part of a mixture reads files."""
    return bool(config.prompts.mixture) and not any(part.files for part in config.prompts.mixture)


def _evaluates_files(config: Config) -> bool:
    """Held-out files are read by the field names of the run, where they have none themselves."""
    return any(dataset.files for dataset in config.eval.datasets)


_OF_ROWS = ("prompts.shuffle", "prompts.on_bad_row")
_PART = "prompts.mixture.0.source"
_FIELDS = (
    "prompts.input_key",
    "prompts.label_key",
    "prompts.metadata_key",
    "prompts.metadata_fields",
    "prompts.tool_key",
    "prompts.template",
)
_IDLE = (
    *algo_rules.IDLE,
    *offline_rules.IDLE,
    *teacher_rules.IDLE,
    Idle(_OF_ROWS, "prompts.source", lambda c: _makes_tasks(c.prompts.source)),
    Idle(_FIELDS, "prompts.source", lambda c: _makes_tasks(c.prompts.source) and not _evaluates_files(c)),
    Idle(_OF_ROWS, _PART, _makes_all_tasks),
    Idle(_FIELDS, _PART, lambda c: _makes_all_tasks(c) and not _evaluates_files(c)),
    Idle(("prompts.chat_template_kwargs",), "prompts.chat_template", lambda c: not c.prompts.chat_template),
    Idle(("env.options", "env.timeout_s"), "rollout.generate", lambda c: c.rollout.generate is not None),
    # A function with slime's signature reads it, as args.max_turns.
    Idle(
        ("env.max_turns",),
        "rollout.generate",
        lambda c: c.rollout.generate is not None and not is_slimes(c.rollout.generate),
    ),
    Idle(("reward.fn",), "reward.weights", lambda c: bool(c.reward.weights)),
    Idle(("train.lora.alpha", "train.lora.targets"), "train.lora.rank", lambda c: c.train.lora.rank == 0),
    Idle(("telemetry.show_sample_every",), "telemetry.sinks", lambda c: "console" not in c.telemetry.sinks),
    Idle(
        tuple(f"telemetry.wandb.{key}" for key in ("project", "group", "entity", "mode")),
        "telemetry.sinks",
        lambda c: "wandb" not in c.telemetry.sinks,
    ),
)


def _given_keys_have_an_effect(view: View) -> Iterator[str]:
    for key, cause in idle_keys(view.config).items():
        if is_given(view.origin(key)):
            yield f"{view.at(key)}: {view.said(key)} has no effect with {view.said(cause)}; remove one"


def _samples_of_a_prompt_differ(view: View) -> Iterator[str]:
    for number, dataset in enumerate(view.config.eval.datasets):
        key, temperature = (
            f"eval.datasets.{number}.{name}" for name in ("samples_per_prompt", "temperature")
        )
        if dataset.samples_per_prompt > 1 and dataset.temperature == 0:
            yield (
                f"{view.at(key)}: {view.said(key)} would all be the same with {view.said(temperature)}; "
                f"raise the temperature, or remove {key}"
            )


def _draws_leave_a_choice(view: View) -> Iterator[str]:
    key = "rollout.top_k"
    if view.value(key) in (0, 1):
        outcome = "draws from no token" if view.value(key) == 0 else "always draws the likeliest token"
        yield f"{view.at(key)}: {view.said(key)} {outcome}; give at least 2, or -1 to draw from all"
    for number, dataset in enumerate(view.config.eval.datasets):
        where = f"eval.datasets.{number}"
        if dataset.top_k == 0:
            given = view.said(f"{where}.top_k")
            yield f"{view.at(f'{where}.top_k')}: {given} draws from no token; give -1 to draw from all"
        cuts = {"top_p": (dataset.top_p or 1) < 1, "top_k": (dataset.top_k or 0) > 0, "min_p": dataset.min_p}
        for own in (f"{where}.{name}" for name, holds in cuts.items() if holds and dataset.temperature == 0):
            greedy = view.said(f"{where}.temperature")
            yield f"{view.at(own)}: {view.said(own)} has no effect with {greedy}; raise the temperature"


def _replies_end(view: View) -> Iterator[str]:
    """A reply that takes the whole budget is the last: the environment would never answer."""
    rollout, env, key = view.config.rollout, view.config.env, "rollout.ignore_eos"
    may_answer = env.type != "single_turn" and env.max_turns > 1
    if rollout.ignore_eos and may_answer and not rollout.stop and not rollout.stop_token_ids:
        yield (
            f"{view.at(key)}: {view.said(key)} leaves the first reply without an end, so that "
            f"{view.said('env.type')} would answer none; give rollout.stop, or remove {key}"
        )


RULES: tuple[Callable[[View], Iterator[str]], ...] = (
    _one_source_of_prompts,
    _only_files_have_fields,
    *algo_rules.RULES,
    *offline_rules.RULES,
    *teacher_rules.RULES,
    _batch_identity,
    _synchronous,
    _template_has_a_place,
    _eval_names,
    _eval_needs_datasets,
    _cache_holds_a_response,
    _warmup_ends,
    _whole_episode_is_one,
    _given_keys_have_an_effect,
    _samples_of_a_prompt_differ,
    _draws_leave_a_choice,
    _replies_end,
)
