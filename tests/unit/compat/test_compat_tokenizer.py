"""The tokenizer over bytes says the same as the renderer."""

import pytest

from strop.compat.tokenizer import ByteTokenizer, load_tokenizer
from strop.errors import DataError
from strop.render.bytes import ByteRenderer
from strop.sample import Prompt

CHAT = ({"role": "system", "content": "Be é."}, {"role": "user", "content": "1 + 1 = ?"})


def test_a_rendered_prompt_is_text_and_the_same_ids_again():
    tokenizer = ByteTokenizer()
    ids = ByteRenderer().prompt(Prompt(id="p", messages=CHAT))
    text = tokenizer.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)
    assert text == "<|system|>Be é.<|end|><|user|>1 + 1 = ?<|end|><|assistant|>"
    assert tokenizer(text, add_special_tokens=False)["input_ids"] == tokenizer.encode(text) == ids
    assert tokenizer.apply_chat_template(CHAT, add_generation_prompt=True) == ids
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode(ids, skip_special_tokens=True) == "Be é.1 + 1 = ?"


def test_it_is_the_tokenizer_of_the_tiny_model(tiny_dir):
    made = load_tokenizer(str(tiny_dir), trust_remote_code=True)
    assert isinstance(made, ByteTokenizer)
    assert load_tokenizer(str(tiny_dir), trust_remote_code=True) is made


@pytest.mark.parametrize("messages", [[], [{"role": "critic", "content": "no"}]])
def test_what_the_renderer_refuses_it_refuses(messages):
    with pytest.raises(DataError):
        ByteTokenizer().apply_chat_template(messages)
