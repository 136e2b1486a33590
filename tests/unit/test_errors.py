"""The boundary around user code, and the tree of exceptions that decides the exit code."""

import asyncio

import pytest

from strop import errors
from strop.errors import (
    ConfigError,
    EngineFailed,
    EnvironmentFailed,
    GenerateFailed,
    InputError,
    Recorded,
    RewardFailed,
    RunError,
    StropError,
    boundary,
    first_line,
)


def raised_through(error: BaseException) -> BaseException:
    """What comes out of a boundary in which `error` is raised."""
    kind = Exception if isinstance(error, Exception) else type(error)
    with pytest.raises(kind) as caught, boundary(RewardFailed, "reward mine"):
        raise error
    return caught.value


def test_what_is_raised_inside_comes_out_as_the_kind_of_the_boundary():
    error = ValueError("no number")
    out = raised_through(error)
    assert type(out) is RewardFailed
    assert str(out) == "reward mine: ValueError: no number"
    assert out.__cause__ is error


def test_an_error_of_strops_own_passes_as_it_is():
    cases = [ConfigError("a"), EngineFailed("b"), GenerateFailed("c"), StropError("d")]
    for error in cases:
        assert raised_through(error) is error, error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError()])
def test_interrupts_and_cancellation_are_not_caught(error):
    assert raised_through(error) is error


@pytest.mark.parametrize("error", [TimeoutError(), TimeoutError("after 3 s")])
def test_a_timeout_is_told_as_one(error):
    assert str(raised_through(error)) == "reward mine: timed out"


async def test_a_deadline_inside_is_told_as_a_timeout():
    async def late():
        with boundary(EnvironmentFailed, "environment x"):
            async with asyncio.timeout(0):
                await asyncio.sleep(1)

    with pytest.raises(EnvironmentFailed, match=r"^environment x: timed out$"):
        await late()


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RuntimeError("one\ntwo\nthree"), "RuntimeError: one"),
        (RuntimeError("\n\n  indented\nmore"), "RuntimeError: indented"),
        (KeyError("row"), "KeyError: 'row'"),
    ],
)
def test_the_text_is_one_line_that_names_the_error(error, text):
    assert str(raised_through(error)) == f"reward mine: {text}"


def test_nothing_happens_when_nothing_is_raised():
    with boundary(RewardFailed, "reward mine"):
        value = 1
    assert value == 1


def test_first_line_is_cut():
    cases = [
        ("", ""),
        ("a", "a"),
        ("a\nb", "a"),
        ("\n a \nb", "a "),
        ("x" * 10, "x" * 10),
        ("x" * 11, "x" * 9 + "…"),
    ]
    for text, line in cases:
        assert first_line(text, 10) == line, text
        assert len(first_line(text, 10)) <= 10, text


def test_every_error_is_either_of_the_input_or_of_the_run():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    leaves = [kind for kind in kinds if issubclass(kind, StropError) and not kind.__subclasses__()]
    assert len(leaves) >= 10
    assert all(issubclass(kind, InputError) != issubclass(kind, RunError) for kind in leaves)


def test_the_tree_in_the_docstring_is_the_tree():
    drawn = [line.split("──")[1].split()[0] for line in errors.__doc__.splitlines() if "── " in line]
    kinds = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, StropError)
    }
    assert set(drawn) == kinds - {"StropError"}


def test_what_is_recorded_on_a_sample_is_no_error_of_the_input():
    assert issubclass(Recorded, RunError)
