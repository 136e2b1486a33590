"""`Teaching`: who teaches a run; and whether every prompt has a teacher, every teacher a prompt."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from strop.config.algo import Algo
from strop.config.toml_text import shown
from strop.errors import DataError
from strop.prompts.mixture import SOURCE_NAME
from strop.sample import Prompt
from strop.train.hint import Hint


@dataclass(frozen=True, slots=True)
class Teaching:
    """Nobody, unless there are paths."""

    paths: tuple[Path | None, ...] = ()
    """Of the models, in the order of the configuration; None: the policy itself."""
    hint: Hint | None = None


def check_taught(section: Algo, prompts: Sequence[Prompt], *, are_all: bool) -> None:
    """Raises DataError for a teacher that none of `prompts` asks, if these are all; and, where a teacher is
    all that there is to learn from, for a prompt that nobody teaches."""
    asked = {prompt.metadata.get(SOURCE_NAME) for prompt in prompts}
    for number, teacher in enumerate(section.teachers):
        if are_all and teacher.sources and asked.isdisjoint(teacher.sources):
            names = ", ".join(sorted(shown(name) for name in asked if name is not None)) or "none"
            raise DataError(
                f"algo.teachers.{number}.sources = {shown(teacher.sources)}: no prompt has such a "
                f"metadata.{SOURCE_NAME}; there is {names}"
            )
    taught = {name for teacher in section.teachers for name in teacher.sources}
    if section.advantage != "none" or any(not teacher.sources for teacher in section.teachers) or not taught:
        return
    for prompt in prompts:
        name = prompt.metadata.get(SOURCE_NAME)
        if name not in taught:
            raise DataError(
                f"{prompt.id}: metadata.{SOURCE_NAME} = {shown(name)} is among the sources of none of "
                "algo.teachers, so that nothing is learnt from it; add it to one"
            )
