"""Fixtures that several stations share: the real tiny model, made once a session."""

from pathlib import Path

import pytest

from strop.nn.loading import CausalLM, load_model
from strop.nn.tiny import make_tiny


@pytest.fixture(scope="session")
def tiny_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer Llama over bytes."""
    return make_tiny(tmp_path_factory.mktemp("models") / "tiny", seed=1)


@pytest.fixture
def tiny(tiny_dir: Path) -> CausalLM:
    """A fresh float32 copy of it."""
    import torch

    return load_model(tiny_dir, torch.float32)
