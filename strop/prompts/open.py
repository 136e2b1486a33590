"""The `prompts` and `eval.datasets` sections → prompts: files read, functions found, everything checked."""

from collections.abc import Mapping
from typing import Any

from strop.config.tree import EvalSet, Prompts
from strop.errors import ConfigError, DataError
from strop.plugins import check_options, resolve
from strop.prompts.base import PromptSource
from strop.prompts.dataset import DatasetSource
from strop.prompts.jsonl import read_jsonl
from strop.prompts.procedural import ProceduralSource
from strop.prompts.rows import Keys
from strop.randomness import derive
from strop.render.base import Renderer
from strop.sample import Prompt

GROUP = "strop.prompts"
"""Entry points of installed packages that make tasks."""


def open_prompts(section: Prompts) -> PromptSource:
    """The source of a run's prompts, every row checked and a procedural source tried once.

    Rows longer than `prompts.max_tokens` are still there: see `drop_long`. Raises InputError.
    """
    if _is_source(section.files, section.source, section.options, where="prompts"):
        if section.max_tokens is not None:
            raise ConfigError(
                f"prompts.max_tokens = {section.max_tokens}: only rows of prompts.files can be left out; "
                "make shorter tasks in prompts.source, or remove max_tokens"
            )
        return _procedural(section.source, section.options, seed=section.seed, where="prompts")
    rows = _read(section.files, section, where="prompts.files")
    return DatasetSource(rows, shuffle=section.shuffle, seed=section.seed)


def open_eval_set(section: EvalSet, prompts: Prompts) -> list[Prompt]:
    """The prompts of one held-out set, read with the field names of the run's own prompts.

    The tasks of a procedural set depend on its name alone, not on any seed of the run, so that runs with
    different seeds are measured on the same tasks. Raises InputError.
    """
    where = f"eval.datasets.{section.name}"
    if _is_source(section.files, section.source, section.options, where=where):
        if section.n is None:
            raise ConfigError(
                f"{where}.source = {section.source!r} needs {where}.n, the number of tasks to make"
            )
        seed = derive(0, "eval", section.name)
        return _procedural(section.source, section.options, seed=seed, where=where).next(section.n)
    rows = _read(section.files, prompts, where=f"{where}.files")
    if section.n is not None and section.n > len(rows):
        raise DataError(f"{where}.n = {section.n}: {', '.join(section.files)} holds {len(rows)} rows")
    return rows[: section.n]


def drop_long(source: PromptSource, renderer: Renderer, *, max_tokens: int) -> PromptSource:
    """The rows that render to at most `max_tokens` tokens, as a source of their own.

    `len` tells how many were left out. Raises DataError if none is that short.
    """
    assert isinstance(source, DatasetSource), "open_prompts refuses max_tokens beside a procedural source"
    return source.shortened(lambda prompt: len(renderer.prompt(prompt)), max_tokens=max_tokens)


def _is_source(files: list[str], source: str | None, options: Mapping[str, Any], *, where: str) -> bool:
    """Whether tasks are made rather than read; exactly one of the two must be asked for."""
    if bool(files) == (source is not None):
        problem = "both are set; remove one" if files else "neither is set"
        raise ConfigError(f"{where}: give either {where}.files or {where}.source: {problem}")
    if options and files:
        raise ConfigError(
            f"{where}.options: {', '.join(options)}: options are for {where}.source, not for files"
        )
    return bool(source)


def _procedural(source: str | None, options: Mapping[str, Any], *, seed: int, where: str) -> ProceduralSource:
    fn = resolve(source, key=f"{where}.source", names={}, group=GROUP)
    check_options(fn, options, key=f"{where}.options", num_given=1)
    try:
        return ProceduralSource(fn, options=options, seed=seed)
    except DataError as caught:
        raise DataError(f"{where}.source = {source!r}: {caught}") from caught


def _read(files: list[str], section: Prompts, *, where: str) -> list[Prompt]:
    prompts = read_jsonl(files, Keys.of(section), where=where)
    if not section.chat_template:
        for prompt in prompts:
            if not isinstance(prompt.messages, str) or prompt.tools:
                has = "tools" if prompt.tools else "chat messages"
                raise DataError(
                    f"{prompt.id}: prompts.chat_template = false needs plain text, the row has {has}"
                )
    return prompts
