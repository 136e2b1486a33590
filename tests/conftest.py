"""Fixtures that several stations share: the real tiny model, made once a session.

torch is imported by the fixtures, not by this file: the process that hands out the tests has no use for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from strop.nn.loading import CausalLM


@pytest.fixture(scope="session")
def tiny_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer Llama over bytes."""
    from strop.nn.tiny import make_tiny

    return make_tiny(tmp_path_factory.mktemp("models") / "tiny", seed=1)


@pytest.fixture
def tiny(tiny_dir: Path) -> CausalLM:
    """A fresh float32 copy of it."""
    import torch

    from strop.nn.loading import load_model

    return load_model(tiny_dir, torch.float32)
