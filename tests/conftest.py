"""Fixtures that several stations share: the real tiny model, made once a session.

torch is imported by the fixtures, not by this file: the process that hands out the tests has no use for it.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest
from fresh import fresh

if TYPE_CHECKING:
    from pathlib import Path

    from strop.nn.loading import CausalLM


# torch, transformers and some thousand tests are a million objects that live to the end: looking through them
# again and again for garbage was a third of the time that collecting the tests took.
gc.disable()


def pytest_collectstart() -> None:
    """In a process that runs tests: their properties are tried on fifteen examples. Said before the tests are
    imported, for a property keeps the settings that it was made under."""
    from hypothesis import settings

    if settings.get_current_profile_name() != "default suite":
        settings.register_profile("default suite", max_examples=15, deadline=None)
        settings.load_profile("default suite")


def pytest_collection_finish() -> None:
    """In a process that runs tests: of garbage only what they make is looked through, and less often."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session")
def tiny_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer Llama over bytes."""
    from strop.nn.tiny import make_tiny

    return make_tiny(tmp_path_factory.mktemp("models") / "tiny", seed=1)


@pytest.fixture
def tiny(tiny_dir: Path) -> CausalLM:
    """A fresh float32 copy of it."""
    return fresh(tiny_dir)
