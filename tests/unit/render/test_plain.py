"""Without transformers a tokenizer gives what it gives there; what is more than plain is left to it."""

import json

import pytest
from chat_model import CHATML, FORGETFUL, LLAMA, MISTRAL, make_chat_tokenizer

from strop.render.plain import PlainTokenizer, plain_tokenizer

MARKED = (
    "{% for message in messages %}{% if message.role == 'assistant' %}"
    "{% generation %}{{ message.content }}{{ eos_token }}{% endgeneration %}{% else %}"
    "  {{ {'ä': message.content} | tojson }}{% if loop.last %}{% break %}{% endif %}\n"
    "{% endif %}{% endfor %}{{ unknown is defined }}{{ tools is none }}{{ documents is none }}"
)
TEXTS = [
    "",
    "Which is the largest number: 52?",
    "<|im_end|>a<s> <|im_start|>user\n",
    " é漢 \t\n\n",
    "<think>x</think>",
]
CHAT = [
    {"role": "user", "content": "Which?"},
    {"role": "assistant", "content": " 52 "},
    {"role": "user", "content": "Why <b>?"},
]


@pytest.fixture(scope="module", params=[CHATML, MISTRAL, LLAMA, FORGETFUL, MARKED, None], ids=range(6))
def pair(request, tmp_path_factory):
    from transformers import AutoTokenizer

    path = make_chat_tokenizer(
        tmp_path_factory.mktemp("chat"), request.param, adds_bos=request.param is LLAMA
    )
    return plain_tokenizer(path), AutoTokenizer.from_pretrained(path)


def test_ids_and_texts_are_transformers_own(pair):
    ours, theirs = pair
    assert isinstance(ours, PlainTokenizer)
    for text in TEXTS:
        assert ours(text)["input_ids"] == theirs(text)["input_ids"]
        ids = theirs(text, add_special_tokens=False)["input_ids"]
        assert ours(text, add_special_tokens=False)["input_ids"] == ids
        for skips in (True, False):
            how = {"skip_special_tokens": skips, "clean_up_tokenization_spaces": False}
            assert ours.decode(ids, **how) == theirs.decode(ids, **how)


def test_special_tokens_are_transformers_own(pair):
    ours, theirs = pair
    for name in ("bos_token", "bos_token_id", "eos_token_id", "pad_token_id", "chat_template"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert {i: str(t) for i, t in ours.added_tokens_decoder.items()} == {
        i: str(t) for i, t in theirs.added_tokens_decoder.items()
    }
    assert [ours.convert_ids_to_tokens(i) for i in range(300)] == theirs.convert_ids_to_tokens(
        list(range(300))
    )


def test_conversations_read_as_in_transformers(pair):
    ours, theirs = pair
    if theirs.chat_template is None:
        return
    for messages in (CHAT[:1], CHAT):
        for tools in (None, [{"name": "add"}]):
            for opens in (True, False):
                how = {"tools": tools, "tokenize": False, "add_generation_prompt": opens, "unknown": 1}
                assert ours.apply_chat_template(messages, **how) == theirs.apply_chat_template(
                    messages, **how
                )


@pytest.fixture
def plain(tmp_path):
    path = make_chat_tokenizer(tmp_path / "plain", adds_bos=True)
    assert plain_tokenizer(path) is not None
    return path


def test_a_key_that_changes_the_tokenizer_is_left_to_transformers(plain):
    cases = [
        {"tokenizer_class": "Qwen2Tokenizer"},
        {"add_bos_token": True},
        {"pad_token": "<|pad|>"},
        {"eos_token": {"content": "<|im_end|>"}},
        {"extra_special_tokens": ["<|im_start|>"]},
        {"chat_template": [{"name": "default", "template": "a"}]},
        {"split_special_tokens": False},
    ]
    file = plain / "tokenizer_config.json"
    content = json.loads(file.read_text())
    for changes in cases:
        file.write_text(json.dumps({**content, **changes}))
        assert plain_tokenizer(plain) is None, changes


@pytest.mark.parametrize("file", ["special_tokens_map.json", "added_tokens.json", "vocab.json"])
def test_a_further_file_is_left_to_transformers(plain, file):
    (plain / file).write_text("{}")
    assert plain_tokenizer(plain) is None


def test_a_tokenizer_that_pads_cuts_or_lacks_a_part_is_left_to_transformers(plain):
    given = {
        "padding": {
            "strategy": "BatchLongest",
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "<|endoftext|>",
        },
        "truncation": {"direction": "Right", "max_length": 9, "strategy": "LongestFirst", "stride": 0},
        "post_processor": None,
    }
    file = plain / "tokenizer.json"
    content = json.loads(file.read_text())
    cases = {key: {**content, key: value} for key, value in given.items()}
    cases |= {key: {k: v for k, v in content.items() if k != key} for key in ("model", "added_tokens")}
    for key, changed in cases.items():
        file.write_text(json.dumps(changed))
        assert plain_tokenizer(plain) is None, key


def test_a_model_whose_tokenizer_transformers_names_itself_is_left_to_it(plain):
    (plain / "config.json").write_text('{"model_type": "qwen2"}')
    assert plain_tokenizer(plain) is None
