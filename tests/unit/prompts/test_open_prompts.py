"""The `prompts` and `eval.datasets` sections become prompts, or one line that says what is wrong."""

from pathlib import Path

import pytest

from strop.config.tree import EvalSet, Prompts
from strop.errors import InputError
from strop.prompts.open import drop_long, open_eval_set, open_prompts
from strop.render.bytes import ByteRenderer

NUMBERS = f"{Path(__file__).parents[3]}/examples/numbers/task.py:largest_number"


@pytest.fixture
def file(tmp_path):
    """Six rows of 1 to 6 bytes."""
    path = tmp_path / "data.jsonl"
    path.write_text("".join(f'{{"prompt": "{"x" * i}", "label": {i}}}\n' for i in range(1, 7)))
    return str(path)


def test_files_become_a_data_set(file):
    source = open_prompts(Prompts(files=[file], shuffle=False)).source
    assert [p.label for p in source.next(7)] == [1, 2, 3, 4, 5, 6, 1]


def test_long_prompts_are_left_out_in_order_and_counted(file):
    whole = open_prompts(Prompts(files=[file], shuffle=False))
    few = drop_long(whole, ByteRenderer(), max_tokens=6)  # three tokens are the template's
    assert [p.label for p in few.source.next(4)] == [1, 2, 3, 1]
    assert (few.num_too_long, len(few.source)) == (3, 3)


def test_all_prompts_too_long_is_an_error(file):
    whole = open_prompts(Prompts(files=[file], shuffle=False))
    with pytest.raises(
        InputError, match="max_tokens = 2: all 6 prompts are longer; the shortest has 4 tokens"
    ):
        drop_long(whole, ByteRenderer(), max_tokens=2)


def test_a_function_becomes_a_procedural_source():
    source = open_prompts(Prompts(source=NUMBERS, options={"split": "train"})).source
    assert source.next(1)[0].messages.startswith("Which is the largest number")


def test_an_eval_set_takes_rows_from_the_start_with_the_runs_field_names(file):
    section = EvalSet(name="held", files=[file], n=2)
    rows = open_eval_set(section, Prompts(files=[file], label_key="prompt"))
    assert [p.label for p in rows] == ["x", "xx"]


def test_procedural_eval_sets_are_the_same_for_every_seed_and_differ_from_training():
    section = EvalSet(name="held", source=NUMBERS, options={"split": "train"}, n=20)
    one, two = (open_eval_set(section, Prompts(source=NUMBERS, seed=seed)) for seed in (1, 2))
    assert one == two
    trained = open_prompts(Prompts(source=NUMBERS, options={"split": "train"}, seed=1)).source.next(20)
    assert [p.messages for p in one] != [p.messages for p in trained]
    assert not {p.id for p in one} & {p.id for p in trained}


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({}, "prompts: give either prompts.files or prompts.source: neither is set"),
        ({"files": ["FILE"], "source": NUMBERS}, "both are set; remove one"),
        ({"files": ["FILE"], "options": {"split": "a"}}, "options are for prompts.source, not for files"),
        ({"source": NUMBERS}, "prompts.options: largest_number needs 'split'"),
        ({"source": NUMBERS, "options": {"splits": "train"}}, "did you mean 'split'"),
        (
            {"source": NUMBERS, "options": {"split": "tain"}},
            "ValueError: split must be 'train' or 'held_out'",
        ),
        (
            {"source": NUMBERS, "options": {"split": "train"}, "max_tokens": 9},
            "only rows of files can be left out",
        ),
        ({"source": NUMBERS.replace("largest", "biggest")}, "has no 'biggest_number'; did you mean"),
        ({"files": ["FILE"], "label_key": "lable"}, "prompts.label_key = 'lable': no row of"),
    ],
)
def test_a_wrong_section_is_one_line(section, message, file):
    given = {**section, "files": [file] if "files" in section else []}
    with pytest.raises(InputError) as caught:
        open_prompts(Prompts(**given))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"source": NUMBERS, "options": {"split": "held_out"}}, "needs eval.datasets.held.n"),
        ({"files": ["FILE"], "n": 7}, "eval.datasets.held.n = 7: "),
        ({}, "neither is set"),
        ({"files": ["nowhere.jsonl"]}, "eval.datasets.held.files = 'nowhere.jsonl': no such file"),
    ],
)
def test_a_wrong_eval_set_is_one_line(section, message, file):
    given = {**section, "files": [file if f == "FILE" else f for f in section.get("files", [])]}
    with pytest.raises(InputError) as caught:
        open_eval_set(EvalSet(name="held", **given), Prompts())
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"prompt": [{"role": "user", "content": "a"}]}', "the row has chat messages"),
        ('{"prompt": "a", "tools": [{"name": "t"}]}', "the row has tools"),
    ],
)
def test_without_a_template_only_plain_text_is_taken(tmp_path, row, message):
    path = tmp_path / "data.jsonl"
    path.write_text(row)
    with pytest.raises(InputError, match=f"data.jsonl:1: prompts.chat_template = false .*{message}"):
        open_prompts(Prompts(files=[str(path)], chat_template=False))
