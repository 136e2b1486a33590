"""A model whose weights are not those that its configuration asks for is refused, and the first is named."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from strop.errors import ConfigError
from strop.nn.catalog import max_positions, model_path
from strop.nn.loading import load_model, outline


@pytest.fixture
def model(tiny_dir, tmp_path):
    """A copy to be spoilt."""
    return shutil.copytree(tiny_dir, tmp_path / "model")


def change_weights(model, change):
    weights = load_file(model / "model.safetensors")
    change(weights)
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})


def change_config(model, **values):
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, **values}))


def refusal(of, *arguments):
    with pytest.raises(ConfigError) as error:
        of(*arguments)
    return str(error.value)


def test_a_model_whose_weights_were_cut_short_is_refused_without_torch(model):
    file = model / "model.safetensors"
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:-100])
    assert refusal(model_path, str(model)) == (
        f'model = "{model}": model.safetensors holds {size - 100} bytes, its header says {size}: it was '
        "cut short or damaged; get it anew"
    )


@pytest.mark.parametrize(
    "content", [b"", b"version https://git-lfs.github.com/spec/v1\n", b"\2\0\0\0\0\0\0\0[]"]
)
def test_weights_that_are_not_safetensors_are_refused_without_torch(model, content):
    (model / "model.safetensors").write_bytes(content)
    assert refusal(model_path, str(model)) == (
        f'model = "{model}": model.safetensors is no safetensors file (a Git LFS pointer, or cut short?): '
        "get it anew"
    )


def test_a_missing_file_of_weights_in_several_is_named(model):
    index = {"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    (model / "model.safetensors").rename(model / "model-1-of-2.safetensors")
    assert refusal(model_path, str(model)) == (
        f'model = "{model}": model-2-of-2.safetensors cannot be read: No such file or directory'
    )


def test_a_checkpoint_without_its_model_is_no_model(model):
    (model / "model.safetensors").rename(model / "optimizer.safetensors")
    assert "has no model.safetensors" in refusal(model_path, str(model))


def test_a_length_that_is_no_number_is_refused(model):
    change_config(model, max_position_embeddings="long")
    assert refusal(max_positions, model).endswith("max_position_embeddings = 'long', expected a whole number")


def test_a_missing_weight_is_not_made_up(model):
    change_weights(model, lambda weights: weights.pop("model.layers.1.mlp.up_proj.weight"))
    expected = (
        f'model = "{model}": weight model.layers.1.mlp.up_proj.weight is missing; config.json and weights '
        "must be of one model"
    )
    assert refusal(outline, model) == expected
    assert refusal(load_model, model, torch.float32) == expected


def test_weights_of_more_layers_than_the_configuration_has_are_not_left_out(model):
    change_config(model, num_hidden_layers=1)
    assert refusal(outline, model) == (
        f'model = "{model}": weight model.layers.1.input_layernorm.weight is not one of this model\'s '
        "(and 8 more); config.json and weights must be of one model"
    )


def test_a_weight_of_another_shape_is_named_with_both(model):
    change_weights(model, lambda weights: weights.update({"model.norm.weight": torch.zeros(65)}))
    assert refusal(outline, model) == (
        f'model = "{model}": weight model.norm.weight has shape [65], expected [64]; config.json and weights '
        "must be of one model"
    )


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"num_hidden_layers": "two"}, "expected int, got str (value: 'two')"),
        (
            {"num_attention_heads": 5},
            "The hidden size (64) is not a multiple of the number of attention heads (5).",
        ),
        ({"rope_parameters": {"rope_type": "spiral"}}, "KeyError: 'spiral'"),
    ],
)
def test_a_configuration_that_makes_no_model_is_refused_in_one_line(model, values, reason):
    change_config(model, **values)
    line = refusal(outline, model)
    assert line.startswith(f'model = "{model}": cannot be loaded: ')
    assert line.endswith(reason)
    assert "\n" not in line


def test_tied_embeddings_need_no_head(model):
    change_config(model, tie_word_embeddings=True)
    change_weights(model, lambda weights: weights.pop("lm_head.weight"))
    outline(model)
    loaded = load_model(model, torch.float32)
    assert (
        loaded.head_VD.data_ptr() == dict(loaded.named_parameters())["model.embed_tokens.weight"].data_ptr()
    )
