"""From the names of teachers to model directories whose ids mean what the policy's mean."""

from pathlib import Path

from strop.config.algo import Algo
from strop.config.teacher import POLICY
from strop.errors import ConfigError
from strop.nn.catalog import fetched, model_path
from strop.nn.loading import outline
from strop.render.same_tokens import mean_the_same
from strop.store.checkpoints import latest_checkpoint
from strop.store.layout import RUN


def teacher_paths(section: Algo, policy: Path) -> tuple[Path | None, ...]:
    """Of every teacher in the order of the configuration; None: the policy itself. One that is not there is
    made or fetched, as `model` is.

    Raises ConfigError for a teacher that cannot score the policy's ids.
    """
    several = [(f"algo.teachers.{number}", row.model) for number, row in enumerate(section.teachers)]
    one = [] if section.teacher.model is None else [("algo.teacher", section.teacher.model)]
    found = []
    for where, name in (*one, *several):
        path = None if name == POLICY else _directory(name, f'{where}.model = "{name}"', section)
        if path is not None and path != policy:
            _check_ids(path, policy, f'{where}.model = "{name}"')
        found.append(path)
    return tuple(found)


def _directory(name: str, what: str, section: Algo) -> Path:
    path = Path(name)
    if (path / RUN).is_file():
        checkpoint = latest_checkpoint(path)
        if checkpoint is None:
            raise ConfigError(f"{what} is a run without a checkpoint; let it finish, or name another model")
        path = checkpoint.path.absolute()
        return model_path(str(path))
    if not path.is_dir() and section.teacher.train_first is not None:
        raise ConfigError(
            f"{what} is not there yet; strop train makes it first, from {section.teacher.train_first}"
        )
    try:
        path = model_path(name)
        return path if path.is_dir() else fetched(name)
    except ConfigError as caught:
        raise ConfigError(f"{what}, as a model: {caught}") from caught


def _check_ids(path: Path, policy: Path, what: str) -> None:
    if not mean_the_same(path, policy):
        raise ConfigError(
            f"{what} has another tokenizer than the policy, whose ids it would score; give a model of the "
            "same family"
        )
    theirs, own = outline(path).vocab_size, outline(policy).vocab_size
    if theirs != own:
        raise ConfigError(
            f"{what} has {theirs} ids and the policy {own}, so that their distributions cannot be compared; "
            "give a model of the same vocabulary"
        )
