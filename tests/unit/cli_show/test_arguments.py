import pytest
from cases import case

from strop.cli.arguments import parse_arguments, whole_number
from strop.errors import ConfigError


def parsed(*argv):
    return parse_arguments(list(argv), "strop show", flags=("--step", "--n"), switches=("--exact",))


def test_flags_take_values_in_both_spellings_and_names_may_stand_anywhere():
    found = parsed("--step", "0", "runs/a", "--step=last", "--exact", "runs/b")
    assert found.names == ["runs/a", "runs/b"]
    assert found.values == {"--step": ["0", "last"], "--n": []}
    assert found.switches == {"--exact"}


def test_a_wrong_flag_is_one_line():
    cases = [
        (["--stpe", "0"], "--stpe: unknown flag of strop show; did you mean --step?"),
        (["--zzz"], "--zzz: unknown flag of strop show; it has --step, --n, --exact"),
        (["--step"], "--step: needs a value"),
        (["--step", "--n", "3"], "--step: needs a value"),
        (["--exact=yes"], "--exact: takes no value, got yes"),
    ]
    for argv, message in cases:
        with case(argv):
            with pytest.raises(ConfigError) as error:
                parsed(*argv)
            assert str(error.value) == message


def test_a_flag_that_may_be_given_once_is_refused_twice():
    with pytest.raises(ConfigError, match="--n: given 2 times, expected once"):
        parsed("--n", "1", "--n", "2").one("--n")


def test_a_number_is_checked():
    for text in ["0", "-3", "two", "1.5"]:
        with case(text):
            with pytest.raises(ConfigError) as error:
                whole_number("--n", text, least=1)
            assert str(error.value) == f"--n: expected a whole number of at least 1, got {text}"
