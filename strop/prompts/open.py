"""The `prompts` and `eval.datasets` sections → prompts: files read, functions found, everything checked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from strop.config.offline import Shape
from strop.config.tree import EvalSet, Part, Prompts
from strop.errors import ConfigError, DataError
from strop.plugins import check_options, resolve
from strop.prompts.base import PromptSource
from strop.prompts.dataset import DatasetSource
from strop.prompts.mixture import MixturePart, MixtureSource
from strop.prompts.none import NoPrompts
from strop.prompts.procedural import ProceduralSource
from strop.prompts.read import BadRows, read_prompts
from strop.prompts.rows import Keys
from strop.randomness import derive
from strop.render.base import Renderer
from strop.sample import Prompt

GROUP = "strop.prompts"
"""Entry points of installed packages that make tasks."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A run's source of prompts, and what of its data is not in it."""

    source: PromptSource
    bad: BadRows = field(default_factory=BadRows)
    """Malformed rows, left out by `prompts.on_bad_row`."""
    num_too_long: int = 0
    """Rows that `prompts.max_tokens` left out."""


def open_prompts(section: Prompts, shape: Shape | None = None) -> Opened:
    """The source of a run's prompts, every row checked and a procedural source tried once. `shape`: of rows
    that hold what is trained.

    Rows longer than `prompts.max_tokens` are still there: see `drop_long`. Raises InputError.
    """
    if section.mixture:
        return _open_mixture(section, shape)
    if _is_source(section, where="prompts"):
        if section.max_tokens is not None:
            raise _only_rows(section.max_tokens, "prompts.source")
        source = _procedural(section.source, section.options, seed=section.seed, where="prompts")
        return Opened(source)
    keys = Keys.of(section, shape=shape)
    return _open_files(section, section.files, keys, seed=section.seed, where="prompts")


def open_eval_set(section: EvalSet, prompts: Prompts, shape: Shape | None = None) -> list[Prompt]:
    """The prompts of one held-out set, read with the field names of the run's own where it has none itself.

    The tasks of a procedural set depend on its name alone, not on any seed of the run, so that runs with
    different seeds are measured on the same tasks. A malformed row is always an error: results of fewer rows
    could not be compared. Raises InputError.
    """
    where = f"eval.datasets.{section.name}"
    if _is_source(section, where=where):
        if section.n is None:
            raise ConfigError(
                f"{where}.source = {section.source!r} needs {where}.n, the number of tasks to make"
            )
        seed = derive(0, "eval", section.name)
        return _procedural(section.source, section.options, seed=seed, where=where).next(section.n)
    own = {"input_key": section.input_key, "label_key": section.label_key, "tool_key": section.tool_key}
    keys = Keys.of(prompts, own, where=where, shape=shape)
    rows = read_prompts(section.files, keys, where=f"{where}.files").prompts
    if section.n is not None and section.n > len(rows):
        raise DataError(f"{where}.n = {section.n}: {', '.join(section.files)} holds {len(rows)} rows")
    return rows[: section.n]


def drop_long(opened: Opened, renderer: Renderer, *, max_tokens: int) -> Opened:
    """The same without the rows that render to more than `max_tokens` tokens, and their number.

    Order is kept, and prompts are never cut. Raises DataError if none of a data set is that short.
    """

    def tokens_of(prompt: Prompt) -> int:
        return len(renderer.prompt(prompt))

    source = _each_data_set(opened.source, lambda data: data.shortened(tokens_of, max_tokens=max_tokens))
    return replace(opened, source=source, num_too_long=_num_rows(opened.source) - _num_rows(source))


def drop_refused(opened: Opened, show: Callable[[Prompt], object]) -> Opened:
    """The same without the rows that cannot be shown to the model, for which `show` raises DataError; they
    count as malformed: a chat template may refuse a role, or two messages in a row. Raises DataError if none
    of a data set is left."""
    refused: list[str] = []

    def is_shown(prompt: Prompt) -> bool:
        try:
            show(prompt)
        except DataError as caught:
            refused.append(str(caught))
            return False
        return True

    try:
        source = _each_data_set(opened.source, lambda data: data.only(is_shown))
    except DataError as caught:
        raise DataError(f"{caught} that can be rendered; for one, {refused[-1]}") from caught
    return replace(opened, source=source, bad=opened.bad + BadRows(len(refused), "".join(refused[:1])))


def only(opened: Opened, keeps: Callable[[Prompt], bool], *, why: str) -> Opened:
    """The same with the rows that `keeps` says yes to; the others are counted as too long. Raises DataError
    if none of a data set is left; `why` ends its message."""
    try:
        source = _each_data_set(opened.source, lambda data: data.only(keeps))
    except DataError as caught:
        raise DataError(f"{caught} {why}") from caught
    return replace(opened, source=source, num_too_long=_num_rows(opened.source) - _num_rows(source))


def look_ahead(source: PromptSource, n: int) -> list[Prompt]:
    """Every prompt of a data set, the first `n` of a source without end, of a mixture those of its parts; the
    position stays."""
    if isinstance(source, NoPrompts):
        return []
    if isinstance(source, MixtureSource):
        return [part.named(prompt) for part in source.parts for prompt in look_ahead(part.source, n)]
    position = source.state()
    prompts = source.next(len(source) or n)
    source.restore(position)
    return prompts


def _open_mixture(section: Prompts, shape: Shape | None) -> Opened:
    if section.files or section.source:
        other = "files" if section.files else "source"
        raise ConfigError(
            f"prompts: give either prompts.mixture or prompts.{other}: both are set; remove one"
        )
    if section.max_tokens is not None and not any(part.files for part in section.mixture):
        raise _only_rows(section.max_tokens, "the sources of prompts.mixture")
    opened = [_open_part(section, part, shape) for part in section.mixture]
    parts = [
        MixturePart(part.name, part.weight, found.source, part.reward)
        for part, found in zip(section.mixture, opened, strict=True)
    ]
    return Opened(MixtureSource(parts), sum((found.bad for found in opened), BadRows()))


def _open_part(section: Prompts, part: Part, shape: Shape | None) -> Opened:
    where = f"prompts.mixture.{part.name}"
    seed = derive(section.seed, "mixture", part.name)
    if _is_source(part, where=where):
        return Opened(_procedural(part.source, part.options, seed=seed, where=where))
    own = {"input_key": part.input_key, "label_key": part.label_key}
    keys = Keys.of(section, own, where=where, shape=shape)
    return _open_files(section, part.files, keys, seed=seed, where=where)


def _open_files(section: Prompts, files: list[str], keys: Keys, *, seed: int, where: str) -> Opened:
    read = read_prompts(files, keys, where=f"{where}.files", skip_bad=section.on_bad_row == "skip")
    return Opened(DatasetSource(read.prompts, shuffle=section.shuffle, seed=seed), read.bad)


def _is_source(section: Prompts | EvalSet | Part, *, where: str) -> bool:
    files, source = section.files, section.source
    if bool(files) == bool(source):
        problem = "both are set; remove one" if files else "neither is set"
        raise ConfigError(f"{where}: give either {where}.files or {where}.source: {problem}")
    if section.options and files:
        raise ConfigError(
            f"{where}.options: {', '.join(section.options)}: options are for {where}.source, not for files"
        )
    return bool(source)


def _procedural(source: str | None, options: Mapping[str, Any], *, seed: int, where: str) -> ProceduralSource:
    fn = resolve(source, key=f"{where}.source", names={}, group=GROUP)
    check_options(fn, options, key=f"{where}.options", num_given=1)
    try:
        return ProceduralSource(fn, options=options, seed=seed)
    except DataError as caught:
        raise DataError(f"{where}.source = {source!r}: {caught}") from caught


def _each_data_set(source: PromptSource, change: Callable[[DatasetSource], DatasetSource]) -> PromptSource:
    if isinstance(source, MixtureSource):
        return MixtureSource([_changed_part(part, change) for part in source.parts])
    return change(source) if isinstance(source, DatasetSource) else source


def _changed_part(part: MixturePart, change: Callable[[DatasetSource], DatasetSource]) -> MixturePart:
    try:
        return replace(part, source=_each_data_set(part.source, change))
    except DataError as caught:
        raise DataError(f"prompts.mixture.{part.name}: {caught}") from caught


def _num_rows(source: PromptSource) -> int:
    if isinstance(source, MixtureSource):
        return sum(len(part.source) for part in source.parts)
    return len(source)


def _only_rows(max_tokens: int, what: str) -> ConfigError:
    return ConfigError(
        f"prompts.max_tokens = {max_tokens}: only rows of files can be left out; make shorter tasks in "
        f"{what}, or remove max_tokens"
    )
