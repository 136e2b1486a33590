"""A teacher that a run trains before it learns from it: `algo.teacher.train_first`."""

from collections.abc import Callable, Sequence
from pathlib import Path

from strop.config.tree import Config
from strop.errors import ConfigError
from strop.store.layout import RUN, finished_steps


def train_teacher(config: Config, train: Callable[[Sequence[str]], int]) -> int:
    """Train the teacher unless it is there; 0 when it is. `train` takes the words of `strop train`. A run of
    the teacher that was interrupted goes on. Raises ConfigError where there is no such run file."""
    teacher = config.algo.teacher
    if teacher.train_first is None or teacher.model is None or not config.loop.steps:
        return 0
    if not Path(teacher.train_first).is_file():
        raise ConfigError(f'algo.teacher.train_first = "{teacher.train_first}": no such file')
    directory, words = Path(teacher.model), [teacher.train_first, "--store.dir", teacher.model]
    if not directory.exists():
        print(f"the teacher is not there yet: {teacher.train_first} trains it")
        return train(words)
    if not (directory / RUN).is_file() or finished_steps(directory) is not None:
        return 0
    print(f"the teacher is not finished: {teacher.train_first} goes on")
    return train([*words, "--resume"])
