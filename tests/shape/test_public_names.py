"""The names that users import; a change here is a line in CHANGELOG.md."""

import inspect
from pathlib import Path

import pytest

import strop
from strop import errors

PUBLIC = [
    "Config", "Group", "Prompt", "Sample", "Sampling", "Scores", "Status", "Tokens", "load_config",
]  # fmt: skip

ERRORS = {
    "ConfigError", "DataError", "EngineFailed", "EnvironmentFailed", "GenerateFailed", "InputError",
    "MissingPackage", "NonFinite", "NothingToLearn", "PluginError", "Recorded", "RewardFailed", "RunError",
    "StropError", "TooLong",
}  # fmt: skip


def test_public_names_are_these():
    assert strop.__all__ == PUBLIC
    assert dir(strop) == PUBLIC


def test_public_name_can_be_imported():
    assert [name for name in PUBLIC if not getattr(strop, name).__doc__] == []


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        strop.trian  # noqa: B018


def test_errors_are_these():
    classes = inspect.getmembers(errors, lambda x: inspect.isclass(x) and x.__module__ == errors.__name__)
    assert {name for name, _ in classes} == ERRORS
    assert all(issubclass(error, errors.StropError) for _, error in classes)


def test_the_tree_in_the_docstring_is_the_tree_in_the_code():
    drawn = errors.__doc__
    assert all(name in drawn for name in ERRORS)


def test_version_is_written_once():
    pyproject = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert strop.__version__ not in [line.partition("=")[2].strip(' "') for line in pyproject.splitlines()]
    assert 'path = "strop/__init__.py"' in pyproject
