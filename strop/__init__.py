"""strop: reinforcement-learning post-training of LLMs and agents.

Public names are loaded on first use, so that `import strop` costs nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "Group": "strop.sample",
    "Prompt": "strop.sample",
    "Sample": "strop.sample",
    "Sampling": "strop.sample",
    "Scores": "strop.sample",
    "Status": "strop.sample",
    "Tokens": "strop.sample",
    "Config": "strop.config.tree",
    "load_config": "strop.config.load",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'strop' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return __all__
