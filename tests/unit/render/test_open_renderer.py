"""Which renderer a model directory asks for."""

import pytest

from strop.errors import ConfigError
from strop.render.bytes import ByteRenderer
from strop.render.open import check_tokenizer, open_renderer


def test_a_tiny_models_directory_asks_for_bytes(tmp_path):
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "StropByteRenderer"}')
    assert isinstance(open_renderer(tmp_path), ByteRenderer)


def test_a_directory_without_a_tokenizer_is_named(tmp_path):
    with pytest.raises(
        ConfigError, match=rf"model = '{tmp_path}': the directory holds no tokenizer; expected"
    ):
        check_tokenizer(tmp_path)


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(ConfigError, match="no such directory"):
        check_tokenizer(tmp_path / "nowhere")


def test_a_broken_tokenizer_config_is_named(tmp_path):
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(ConfigError, match=r"tokenizer_config.json: not valid JSON"):
        check_tokenizer(tmp_path)


def test_a_tokenizer_alone_is_enough(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    assert check_tokenizer(tmp_path) == ""
