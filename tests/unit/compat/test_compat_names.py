"""slime's import names, the parts behind them, and what there is not."""

import importlib
import sys

import pytest

from strop.compat.data_source import RolloutDataSourceWithBuffer
from strop.compat.names import MODULES, install
from strop.compat.sample import Sample


@pytest.fixture(autouse=True)
def installed():
    """As for a run; taken back, so that other tests see the machine as it is."""
    finders, modules = list(sys.meta_path), dict(sys.modules)
    install()
    yield
    sys.meta_path[:] = finders
    for name in set(sys.modules) - set(modules):
        if name.split(".")[0] == "slime" or name.startswith("strop.compat.slime."):
            del sys.modules[name]


@pytest.mark.parametrize("root", ["slime", "strop.compat.slime"])
def test_names_stand_for_what_strop_has(root):
    assert importlib.import_module(f"{root}.utils.types").Sample is Sample
    data = importlib.import_module(f"{root}.data")
    assert (data.Sample, data.RolloutDataSourceWithBuffer) == (Sample, RolloutDataSourceWithBuffer)
    assert importlib.import_module(f"{root}.rollout.sglang_rollout").GenerateState
    assert importlib.import_module(f"{root}.utils.http_utils").post


def test_every_name_of_the_table_can_be_imported():
    for name in MODULES:
        assert importlib.import_module(f"slime.{name}").__name__ == f"slime.{name}", name


def test_what_strop_has_nothing_for_is_said_by_name():
    with pytest.raises(
        ModuleNotFoundError, match=r"strop has nothing for slime.backends; it has slime.data, "
    ):
        importlib.import_module("slime.backends.megatron_utils")


def test_a_name_that_a_module_has_not_is_an_import_error():
    with pytest.raises(ImportError, match="cannot import name 'RayTrainGroup'"):
        exec("from slime.utils.types import RayTrainGroup")


def test_installing_twice_is_once():
    before = len(sys.meta_path)
    install()
    assert len(sys.meta_path) == before
