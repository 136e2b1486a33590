"""Who teaches what is known before a run begins."""

import pytest

from strop.config.algo import Algo
from strop.config.teacher import OneTeacher, Teacher
from strop.errors import DataError
from strop.sample import Prompt
from strop.train.teaching import check_taught

PROMPTS = [Prompt(id=name, messages="", metadata={"source_name": name}) for name in ("maths", "code")]


def of(*sources: list[str], advantage: str = "none") -> Algo:
    return Algo(advantage=advantage, teachers=[OneTeacher(model="t", sources=names) for names in sources])


def test_a_teacher_that_no_prompt_asks_is_named() -> None:
    expected = (
        r'^algo\.teachers\.1\.sources = \["poetry"\]: no prompt has such a metadata\.source_name; '
        'there is "code", "maths"$'
    )
    with pytest.raises(DataError, match=expected):
        check_taught(of([], ["poetry"]), PROMPTS, are_all=True)
    with pytest.raises(DataError, match=r"there is none$"):
        check_taught(of(["poetry"], []), [Prompt(id="p", messages="")], are_all=True)
    check_taught(of([], ["poetry"]), PROMPTS, are_all=False)


def test_a_prompt_that_nobody_teaches_is_named_unless_it_is_rewarded() -> None:
    expected = '^code: metadata.source_name = "code" is among the sources of none of algo.teachers, so that'
    with pytest.raises(DataError, match=expected):
        check_taught(of(["maths"]), PROMPTS, are_all=True)
    check_taught(of(["maths"], advantage="group"), PROMPTS, are_all=True)
    check_taught(of(["maths"], ["code"]), PROMPTS, are_all=True)
    check_taught(Algo(advantage="none", teacher=Teacher(model="t")), PROMPTS, are_all=True)
