"""Where strop keeps models: the only environment variable that it reads outside the command line."""

import os
from pathlib import Path


def models_dir() -> Path:
    """`$STROP_HOME/models`, by default `~/.cache/strop/models`; not created here."""
    return Path(os.environ.get("STROP_HOME") or Path.home() / ".cache" / "strop") / "models"
