"""Every worked value of the specification is held by a test, and the check that says so can fail."""

from dataclasses import replace

import pytest
from manifest import Value, missing
from worked_values import LATER, VALUES

DPO = Value("2.14", "DPO", (0.62095705,), "golden/test_preference.py", "2.14-dpo-gradient")
SECTIONS = [f"1.{n}" for n in range(3, 9)] + [f"2.{n}" for n in range(1, 21)]


def test_every_value_is_held():
    assert all(claim.values for claim in VALUES)
    assert [f"{claim.section} {claim.what}: {why}" for claim in VALUES if (why := missing(claim))] == []


def test_no_section_with_a_worked_value_is_left_out():
    told = {claim.section for claim in VALUES} | {what.split()[0] for what in LATER}
    assert sorted(told) == sorted(SECTIONS)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"values": (0.6209580,)}, "2.14-dpo-gradient does not hold 0.620958"),
        ({"values": (0.53742985, 0.53742985)}, "2.14-dpo-gradient does not hold 0.53742985"),
        ({"place": "2.14-dp"}, "golden/test_preference.py has no row or test 2.14-dp"),
        ({"place": "test_gone"}, "golden/test_preference.py has no row or test test_gone"),
        ({"file": "golden/test_gone.py"}, "there is no golden/test_gone.py"),
        ({"values": (0.53742985, -0.04625702)}, None),
    ],
)
def test_a_value_that_nothing_holds_is_told(change, why):
    assert missing(replace(DPO, **change)) == why
