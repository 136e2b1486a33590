import pytest
from chat_model import make_chat_tokenizer

from strop.errors import ConfigError
from strop.render.bytes import ByteRenderer
from strop.render.open import open_renderer
from strop.render.stop_texts import refuse_special


def test_a_special_token_is_no_stop_text_and_its_id_is_the_way_out(tmp_path):
    renderer = open_renderer(make_chat_tokenizer(tmp_path))
    refuse_special(["</answer>", "im_end", "\n\n"], renderer, key="rollout.stop")
    with pytest.raises(ConfigError) as caught:
        refuse_special(["</answer>", "done<|im_end|>"], renderer, key="rollout.stop")
    assert str(caught.value) == (
        'rollout.stop has "done<|im_end|>", but <|im_end|> is a special token, which is no part of a '
        "reply's text; give its id instead: rollout.stop_token_ids = [2]"
    )


def test_bytes_can_say_everything():
    refuse_special(["<|im_end|>"], ByteRenderer(), key="rollout.stop")
