"""The `prompts` and `eval.datasets` sections become prompts, or one line that says what is wrong."""

import json
import tracemalloc
from pathlib import Path

import pytest
from cases import case

from strop.config.tree import EvalSet, Part, Prompts
from strop.errors import InputError
from strop.prompts.open import drop_long, look_ahead, open_eval_set, open_prompts
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


def test_the_long_prompt_filter_keeps_the_order_of_messages_and_text(tmp_path):
    texts = ["aa", "x" * 9, "bb", "x" * 12, "cc", "dd"]
    rows = [
        {"prompt": [{"role": "user", "content": text}] if place % 2 else text, "label": f"p{place}"}
        for place, text in enumerate(texts)
    ]
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    few = drop_long(open_prompts(Prompts(files=[str(path)], shuffle=False)), ByteRenderer(), max_tokens=6)
    assert [p.label for p in few.source.next(4)] == ["p0", "p2", "p4", "p5"]


def test_a_long_prompt_is_left_out_and_never_cut(file):
    whole = open_prompts(Prompts(files=[file], shuffle=False))
    few = drop_long(whole, ByteRenderer(), max_tokens=6)
    assert few.source.next(6) == whole.source.next(6)[:3] * 2


def test_long_prompts_of_a_mixture_are_left_out_of_each_part_and_counted(file):
    parts = [
        Part(name="a", files=[file]),
        Part(name="b", files=[f"{file}@[:4]"]),
        Part(name="c", source=NUMBERS, options={"split": "train"}),
    ]
    few = drop_long(open_prompts(Prompts(mixture=parts)), ByteRenderer(), max_tokens=6)
    assert few.num_too_long == 4
    assert {p.label for p in few.source.next(30) if p.metadata["source_name"] == "a"} == {1, 2, 3}
    with pytest.raises(
        InputError, match=r"prompts.mixture.a: prompts.max_tokens = 1: all 6 prompts are longer"
    ):
        drop_long(open_prompts(Prompts(mixture=parts)), ByteRenderer(), max_tokens=1)


def test_every_row_of_every_part_is_seen_ahead_and_the_position_stays(file):
    parts = [
        Part(name="a", files=[file]),
        Part(name="b", source=NUMBERS, options={"split": "train"}, weight=9),
    ]
    source = open_prompts(Prompts(mixture=parts)).source
    before = source.state()
    assert [p.metadata["source_name"] for p in look_ahead(source, 2)] == ["a"] * 6 + ["b"] * 2
    assert source.state() == before


def test_parts_have_orders_fields_and_rewards_of_their_own(file, tmp_path):
    (tmp_path / "other.jsonl").write_text('{"question": "q", "answer": "a"}\n')
    other = Part(
        name="b",
        files=[str(tmp_path / "other.jsonl")],
        input_key="question",
        label_key="answer",
        reward="math",
    )
    source = open_prompts(Prompts(mixture=[Part(name="a", files=[file]), other])).source
    drawn = source.next(12)
    assert [(p.id, p.messages, p.label, p.reward) for p in drawn[1:3:2]] == [
        ("b/other.jsonl:1", "q", "a", "math")
    ]
    twice = open_prompts(Prompts(mixture=[Part(name=n, files=[file]) for n in "xy"])).source.next(12)
    assert [p.label for p in twice[::2]] != [p.label for p in twice[1::2]]


def test_a_function_becomes_a_procedural_source():
    source = open_prompts(Prompts(source=NUMBERS, options={"split": "train"})).source
    assert source.next(1)[0].messages.startswith("Which is the largest number")


def test_an_eval_set_takes_rows_from_the_start_with_the_runs_field_names(file):
    section = EvalSet(name="held", files=[file], n=2)
    rows = open_eval_set(section, Prompts(files=[file], label_key="prompt"))
    assert [p.label for p in rows] == ["x", "xx"]


def test_a_key_of_an_eval_set_wins_and_one_that_is_unset_does_not_hide_the_runs(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"question": "q", "answer": "a", "gold": "g", "functions": [{"name": "t"}]}\n')
    prompts = Prompts(files=[str(path)], input_key="question", label_key="answer")
    plain, own = (
        open_eval_set(EvalSet(name="held", files=[str(path)], **keys), prompts)[0]
        for keys in ({"input_key": None, "label_key": None}, {"label_key": "gold", "tool_key": "functions"})
    )
    assert (plain.messages, plain.label, plain.tools) == ("q", "a", ())
    assert (own.messages, own.label, own.tools) == ("q", "g", ({"name": "t"},))


def test_an_eval_set_takes_every_format_and_slices(tables):
    for kind in ["jsonl.gz", "parquet", "saved", "shards"]:
        with case(kind):
            path = tables(kind, [{"prompt": str(i)} for i in range(9)])
            rows = open_eval_set(EvalSet(name="held", files=[f"{path}@[-4:]"], n=2), Prompts())
            assert [p.messages for p in rows] == ["5", "6"]


def test_two_eval_rows_with_the_same_text_stay_two(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"prompt": "a", "label": 1}\n{"prompt": "a", "label": 2}\n')
    rows = open_eval_set(EvalSet(name="held", files=[str(path)]), Prompts())
    assert len({p.id for p in rows}) == 2


def test_procedural_eval_sets_are_the_same_for_every_seed_and_differ_from_training():
    section = EvalSet(name="held", source=NUMBERS, options={"split": "train"}, n=20)
    one, two = (open_eval_set(section, Prompts(source=NUMBERS, seed=seed)) for seed in (1, 2))
    assert one == two
    trained = open_prompts(Prompts(source=NUMBERS, options={"split": "train"}, seed=1)).source.next(20)
    assert [p.messages for p in one] != [p.messages for p in trained]
    assert not {p.id for p in one} & {p.id for p in trained}


def test_a_wrong_section_is_one_line(file):
    cases = [
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
        ({"files": ["FILE"], "mixture": [Part(name="a", files=["x"])]}, "give either prompts.mixture or"),
        ({"mixture": [Part(name="a")]}, "prompts.mixture.a: give either prompts.mixture.a.files or"),
        ({"mixture": [Part(name="a", source="m:f")], "max_tokens": 9}, "only rows of files can be left out"),
        ({"files": ["FILE"], "metadata_fields": ["x"]}, "prompts.metadata_fields = 'x': no row of"),
        ({"files": ["FILE"], "label_key": "lable"}, "prompts.label_key = 'lable': no row of"),
    ]
    for section, message in cases:
        with case(section):
            given = {**section, "files": [file] if "files" in section else []}
            with pytest.raises(InputError) as caught:
                open_prompts(Prompts(**given))
            assert message in str(caught.value)


def test_a_wrong_eval_set_is_one_line(file):
    cases = [
        ({"source": NUMBERS, "options": {"split": "held_out"}}, "needs eval.datasets.held.n"),
        ({"files": ["FILE"], "n": 7}, "eval.datasets.held.n = 7: "),
        ({}, "neither is set"),
        ({"files": ["FILE"], "label_key": "gold"}, "eval.datasets.held.label_key = 'gold': no row of"),
        ({"files": ["FILE"], "input_key": "q"}, "no field 'q' (eval.datasets.held.input_key) (the row has"),
        ({"files": ["nowhere.jsonl"]}, "eval.datasets.held.files = 'nowhere.jsonl': no such file"),
    ]
    for section, message in cases:
        with case(section):
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


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_reading_never_holds_two_copies_of_the_data(tables, kind):
    path = tables(kind, [{"prompt": f"{i} " + "x" * 500, "unread": "y" * 500} for i in range(1500)])
    open_prompts(Prompts(files=[f"{path}@[:1]"]))
    tracemalloc.start()
    opened = open_prompts(Prompts(files=[str(path)]))
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(opened.source) == 1500
    assert peak < 1.6 * held
