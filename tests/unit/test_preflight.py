"""What cannot go well is refused before the run begins, by the name of the row or the function."""

import json
import shutil

import pytest
from cases import case
from chat_model import CHATML, make_chat_tokenizer

from strop.config.load import load_config
from strop.errors import InputError
from strop.preflight import prepare

# ruff: noqa: E501 (a message is one line, here as there)

MINE = """
import numpy as np

def good_task(rng): return {"prompt": "a", "label": 1.5, "metadata": {"half": np.float64(0.5)}}
def numpy_label(rng): return {"prompt": "a", "label": np.int64(3)}
def set_inside(rng): return {"prompt": "a", "label": "b", "metadata": {"seen": {1, 2}}}
def infinity(rng): return {"prompt": "a", "label": float("inf")}
def reward(sample): return 1.0

def keep_two(group, more): return True
async def keep_async(group): return True
def keep_nothing(): return True
def keep(group): return True

async def generate_one(prompt): return []
def generate_plain(prompt, ctx): return []
async def generate(prompt, ctx): return []
class Generate:
    async def __call__(self, prompt, ctx): return []
generate_object = Generate()

class Env:
    async def start(self, prompt): ...
    async def step(self, reply): ...
    async def close(self): ...
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "data.jsonl").write_text(
        '{"prompt": "ab", "label": "b"}\n{"prompt": "abcdefgh", "label": "d"}\n'
    )
    (tmp_path / "own.jsonl").write_text('{"prompt": "a", "label": 1, "metadata": {"rm_type": "exakt"}}\n')
    (tmp_path / "unlabelled.jsonl").write_text('{"prompt": "ab", "label": "b"}\n{"prompt": "cd"}\n')


@pytest.fixture
def prepared(tiny_dir):
    """`prepare` on the tiny model with these flags."""

    def prepared(flags, *, model=tiny_dir):
        has_prompts = "--prompts.files" in flags or "--prompts.source" in flags
        files = "" if has_prompts else "--prompts.files data.jsonl"
        argv = f"--model {model} --loop.steps 1 --rollout.max_response_tokens 8 {files} {flags}"
        return prepare(load_config([], argv.split()).config)

    return prepared


def source(name):
    return f"--prompts.source mine.py:{name}"


REFUSED = {
    source("numpy_label"): (
        "label: cannot be stored as JSON (Object of type int64 is not JSON serializable); use finite numbers, "
        "text, lists and tables"
    ),
    source("set_inside"): (
        "metadata.seen: cannot be stored as JSON (Object of type set is not JSON serializable); use finite "
        "numbers, text, lists and tables"
    ),
    source("infinity"): "label: cannot be stored as JSON (Out of range float values are not JSON compliant",
    "--prompts.files unlabelled.jsonl": (
        "prompts: unlabelled.jsonl:2 has no label, which reward.fn = 'exact' compares with; add one, or name its "
        "field in prompts.label_key"
    ),
    "--prompts.files data.jsonl own.jsonl": "prompts: the reward of own.jsonl:1 = 'exakt': no such name; did you",
    "--eval-prompt-data dev unlabelled.jsonl --reward.fn f1": (
        "eval.datasets.dev: unlabelled.jsonl:2 has no label, which reward.fn = 'f1' compares with; add one, or "
        "name its field in prompts.label_key"
    ),
    "--reward.fn first_number --prompts.shuffle false": (
        "prompts: data.jsonl:1: reward.fn = 'first_number': label 'b' is not a number"
    ),
    "--prompts.files unlabelled.jsonl --reward.fn regex --reward.options.pattern a": "which reward.fn = 'regex'",
    "--prompts.files unlabelled.jsonl --env.type calculator": "which reward.fn = 'exact' compares with",
    "--eval-prompt-data dev data.jsonl --reward.fn judge --reward.group --reward.options.model policy --reward.options.form pairwise": (
        "eval.datasets.dev.samples_per_prompt = 1 leaves judge nothing to compare; raise it, or give the set a reward of "
        "its own: eval.datasets.dev.reward"
    ),
    "--reward.fn judge --reward.options.model ./gone": 'the judge\'s model = "./gone" is not a directory, nor one of',
    "--rollout.keep mine.py:keep_two": "keep_two must take (group): missing a required argument: 'more'",
    "--rollout.keep mine.py:keep_nothing": "keep_nothing must take (group): too many positional arguments",
    "--rollout.keep mine.py:keep_async": "keep_async must be a plain `def`, as it is not awaited",
    "--rollout.generate mine.py:generate_one": (
        "generate_one must take (prompt, ctx): too many positional arguments"
    ),
    "--rollout.generate mine.py:generate_plain": "generate_plain must be `async def`, as it is awaited",
    "--env.type calculator --prompts.chat_template false": (
        'env.type = "calculator": prompts.chat_template = false, but the environment answers the model'
    ),
}

TAKEN = [
    source("good_task"),
    "--prompts.files unlabelled.jsonl --reward.fn mine.py:reward",
    "--prompts.files unlabelled.jsonl --reward.fn regex --reward.options.pattern a --reward.options.label false",
    "--prompts.files unlabelled.jsonl --env.type mine.py:Env",
    "--prompts.files unlabelled.jsonl --rollout.generate mine.py:generate",
    "--rollout.keep mine.py:keep",
    "--rollout.keep reward_std",
    "--rollout.generate mine.py:generate_object",
    "--env.type calculator",
    "--env.type calculator --env.max_turns 1 --prompts.chat_template false",
]


def test_what_cannot_go_well_is_refused(prepared):
    for flags, line in REFUSED.items():
        with case(flags):
            with pytest.raises(InputError) as error:
                prepared(flags)
            assert line in str(error.value)
            assert "\n" not in str(error.value)


def test_what_can_go_well_is_not(prepared):
    for flags in TAKEN:
        with case(flags):
            prepared(flags)


@pytest.fixture
def chat_model(tiny_dir, tmp_path):
    """The tiny model with a tokenizer that has this chat template."""

    def made(template):
        model = shutil.copytree(tiny_dir, tmp_path / "model")
        (model / "tokenizer_config.json").unlink()
        return make_chat_tokenizer(model, template)

    return made


def test_a_template_that_rewrites_earlier_turns_is_refused_where_turns_follow(prepared, chat_model):
    only_the_last = "{% for m in messages %}{{ m.content if loop.last else '…' }}{% endfor %}"
    model = chat_model(only_the_last)
    prepared("", model=model)
    with pytest.raises(InputError, match=r'env.type = "calculator": .* rewrites earlier turns'):
        prepared("--env.type calculator", model=model)


def test_a_template_without_the_answers_role_is_refused_with_the_other(prepared, chat_model):
    refuse = "{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}"
    model = chat_model("{% for m in messages %}" + refuse + "{% endfor %}" + CHATML)
    prepared("--env.type calculator --env.options.role user", model=model)
    with pytest.raises(InputError, match=r'refuses it: no tools; or set env.options.role = "user"'):
        prepared("--env.type calculator", model=model)


def test_rows_that_are_too_long_are_left_out_and_counted(prepared):
    few = prepared("--prompts.files data.jsonl --prompts.max_tokens 6")
    assert (few.num_too_long, len(few.source)) == (1, 1)
    assert prepared("").num_too_long == 0


def test_a_model_of_other_weights_is_refused_last(prepared, tiny_dir, tmp_path):
    model = shutil.copytree(tiny_dir, tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(InputError, match=r"weight model\.layers\.2\.input_layernorm\.weight is missing"):
        prepared("", model=model)


def test_a_row_that_the_template_refuses_does_not_end_a_run_that_leaves_bad_rows_out(tmp_path, prepared):
    """open-instruct#1806, prime-rl#2261: one row that could not be rendered ended the whole preparation."""
    rows = [[{"role": role, "content": "a"}] for role in ("user", "critic", "user", "critic")]
    path = tmp_path / "roles.jsonl"
    path.write_text("".join(json.dumps({"prompt": row, "label": "a"}) + "\n" for row in rows))
    flags = f"--prompts.files {path} --prompts.shuffle false"
    with pytest.raises(InputError, match=r"^roles.jsonl:2: .*got 'critic'"):
        prepared(flags)
    left = prepared(f"{flags} --prompts.on_bad_row skip")
    assert [prompt.id for prompt in left.source.next(3)] == [
        "roles.jsonl:1",
        "roles.jsonl:3",
        "roles.jsonl:1",
    ]
    assert left.bad_rows.count == 2
    assert left.bad_rows.first.startswith("roles.jsonl:2: ")
    path.write_text(json.dumps({"prompt": rows[1], "label": "a"}))
    with pytest.raises(InputError, match=r"holds no prompts that can be rendered; for one, roles.jsonl:1: "):
        prepared(f"{flags} --prompts.on_bad_row skip")
