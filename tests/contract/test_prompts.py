"""Every prompt source keeps the seam's promises."""

import json
import random
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from cases import case

from strop.config.tree import Part, Prompts
from strop.errors import DataError
from strop.prompts.open import open_prompts
from strop.sample import Prompt

PATH = str(Path(__file__).with_name("plugins_sample.py"))
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("".join(f'{{"prompt": "row {i}", "label": {i}}}\n' for i in range(5)))
    return str(path)


SECTIONS = {
    "files": {"files": ["FILE"]},
    "files in order": {"files": ["FILE"], "shuffle": False},
    "file twice": {"files": ["FILE", "FILE"]},
    "slice": {"files": ["FILE@[1:-1]"]},
    "by path": {"source": f"{PATH}:count_up"},
    "by module": {"source": "plugins_sample:count_up", "options": {"top": 9}},
    "numbers": {"source": f"{EXAMPLES}/numbers/task.py:largest_number", "options": {"split": "train"}},
    "mixture": {
        "mixture": [
            Part(name="rows", files=["FILE"], weight=2),
            Part(name="tasks", source="plugins_sample:count_up"),
        ]
    },
    "first run": {"source": f"{EXAMPLES}/first_run/task.py:find_digit", "options": {"split": "held_out"}},
}


@pytest.fixture
def makers(file):
    """(name, what opens the same source anew) of each."""
    return [(name, partial(opened, section, file)) for name, section in SECTIONS.items()]


def opened(section, file):
    named = section.get("files", []), section.get("mixture", [])
    files = [name.replace("FILE", file) for name in named[0]]
    mixture = [p.model_copy(update={"files": [file for _ in p.files]}) for p in named[1]]
    return open_prompts(Prompts(**{**section, "files": files, "mixture": mixture, "seed": 0})).source


def test_exactly_n_prompts_come(makers):
    for (name, make), n in product(makers, [0, 1, 3, 8]):
        with case(name, n):
            prompts = make().next(n)
            assert len(prompts) == n
            assert all(isinstance(prompt, Prompt) for prompt in prompts)


def test_batch_sizes_do_not_change_the_order(makers):
    for name, make in makers:
        with case(name):
            one, two = make(), make()
            assert [p for n in (1, 4, 2, 6) for p in one.next(n)] == two.next(13)


def test_a_position_is_the_whole_state(makers):
    for (name, make), taken in product(makers, [0, 2, 5, 11]):
        with case(name, taken):
            source, again = make(), make()
            source.next(taken)
            again.next(3)
            again.restore(json.loads(json.dumps(source.state())))
            assert again.next(9) == source.next(9)


def test_a_position_in_other_data_is_refused(makers, tmp_path):
    (tmp_path / "other.jsonl").write_text('{"prompt": "a"}\n')
    other = open_prompts(Prompts(files=[str(tmp_path / "other.jsonl")])).source
    for name, make in makers:
        with case(name), pytest.raises(DataError):
            make().restore(other.state() | {"position": 0})


def test_an_id_names_one_task_in_every_epoch_and_run(makers):
    for name, make in makers:
        seen = {}
        for prompt in make().next(20) + make().next(20):
            assert seen.setdefault(prompt.id, prompt) == prompt, name


def test_global_random_state_is_neither_read_nor_changed(makers):
    for name, make in makers:
        with case(name):
            random.seed(1)
            one, before = make().next(7), random.getstate()
            random.seed(2)
            two = make().next(7)
            random.seed(1)
            assert one == two
            assert random.getstate() == before


def test_length_is_that_of_an_epoch_or_0(makers):
    for name, make in makers:
        source = make()
        if len(source):
            assert len({p.id for p in source.next(len(source))}) == len(source), name
