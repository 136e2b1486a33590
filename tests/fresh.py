"""Models for tests that change them: a directory is read once, each test gets a copy of its own."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from strop.nn.loading import CausalLM


def fresh(directory: Path) -> CausalLM:
    """The float32 model in a directory that no longer changes."""
    return deepcopy(_loaded(directory))


@cache
def _loaded(directory: Path) -> CausalLM:
    import torch

    from strop.nn.loading import load_model

    return load_model(directory, torch.float32)
