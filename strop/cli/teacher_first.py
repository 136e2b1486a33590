"""A teacher that a run trains before it learns from it: `algo.teacher.train_first`."""

from collections.abc import Callable, Sequence
from pathlib import Path

from strop.config.teacher import POLICY, Teacher
from strop.config.tree import Config
from strop.errors import ConfigError
from strop.store.layout import RUN, finished_steps


def train_teacher(
    config: Config,
    train: Callable[[Sequence[str]], int],
    *,
    check: Callable[[Config], object],
    waiting: Sequence[Path] = (),
) -> int:
    """Train the teacher unless it is there; 0 when it is. `train` takes the words of `strop train`. A run of
    the teacher that was interrupted goes on. `waiting`: directories, absolute, of this run and of those that
    it is to teach. Raises ConfigError where there is no such run file, or the teacher is one of `waiting`,
    and what `check` raises: no teacher is trained for a run that cannot begin."""
    teacher = config.algo.teacher
    if teacher.train_first is None or teacher.model is None or not config.loop.steps:
        return 0
    if not Path(teacher.train_first).is_file():
        raise ConfigError(f'algo.teacher.train_first = "{teacher.train_first}": no such file')
    directory, words = Path(teacher.model), [teacher.train_first, "--store.dir", teacher.model]
    if directory.absolute() in waiting:
        raise ConfigError(
            f'algo.teacher.model = "{teacher.model}" is made by a run that would have to learn from it; let '
            f"{teacher.train_first} have no teacher, or another one"
        )
    is_begun = (directory / RUN).is_file()
    if directory.exists() and (not is_begun or finished_steps(directory) is not None):
        return 0
    # Hints are looked at with the policy in the teacher's place.
    hinted = teacher.model_copy(update={"model": POLICY, "train_first": None})
    stand_in = Teacher() if teacher.hint_key is None else hinted
    check(config.model_copy(update={"algo": config.algo.model_copy(update={"teacher": stand_in})}))
    print(f"the teacher is not {'finished' if is_begun else 'there'} yet: {teacher.train_first} trains it")
    return train([*words, "--resume"] if is_begun else words)
