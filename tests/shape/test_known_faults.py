"""Every known fault of the field, and every value and defect of slime's, has a test or a reason for none."""

import ast
from functools import cache
from pathlib import Path

from faults import FAULTS
from faults_of_runs import FAULTS_OF_RUNS
from faults_of_slime import DEFECTS, VALUES

ROOT = Path(__file__).parents[2]
IDS = {
    "A": (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18),
    "B": (2, 4, 6, 8, 10, 12, 13, 14, 16, 18, 20, 22),
    "C": (1, 2, 4, 6, 8, 10, 12, 14, 16, 18),
    "D": (1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20),
    "E": (1, 2, 3, 4, 6, 8, 10, 12, 14),
    "G": (2, 4, 6, 8, 10, 12),
    "H": (2, 4, 6, 8, 10),
    "J": (1, 2, 4, 6, 8),
}
ROWS = (2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 15, 16, 17, 18, 19)
NUM_DEFECTS = 28
KNOWN = {**FAULTS, **FAULTS_OF_RUNS}
COVERED = {**KNOWN, **VALUES, **{f"slime {number}": covered for number, covered in DEFECTS.items()}}
WITHOUT_TESTS = {key: covered for key, covered in COVERED.items() if isinstance(covered, str)}


@cache
def defined_in(path: str) -> frozenset[str]:
    """Names of the test functions of a file, by its syntax tree: nothing is imported."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def test_every_fault_is_in_the_table():
    assert list(KNOWN) == [f"{family}{number}" for family, numbers in IDS.items() for number in numbers]
    assert list(VALUES) == [f"4.{row}" for row in ROWS]
    assert list(DEFECTS) == list(range(1, NUM_DEFECTS + 1))


def test_the_tests_of_a_fault_are_there():
    places = {key: places for key, places in COVERED.items() if key not in WITHOUT_TESTS}
    assert all(len(set(named)) == len(named) > 0 for named in places.values())
    named = [(key, *place.split("::")) for key, found in places.items() for place in found]
    assert [row for row in named if not (ROOT / row[1]).is_file() or row[2] not in defined_in(row[1])] == []


def test_a_fault_without_a_test_has_a_reason():
    assert all(len(reason.split()) > 5 and "\n" not in reason for reason in WITHOUT_TESTS.values())
    assert len(WITHOUT_TESTS) < len(COVERED) / 5
