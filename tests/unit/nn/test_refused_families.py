"""Models that are not served are refused by name, with the reason, from config.json alone."""

import json

from strop.errors import ConfigError
from strop.nn.catalog import max_positions, model_path
from strop.nn.families import SUPPORTED

SERVED = f"supported: {', '.join(sorted(SUPPORTED))}"
RECURRENT = (
    "whose layers are not all softmax attention (recurrent, linear or convolutional): the engine's cache and "
    f"shared prompts do not serve them; {SERVED}"
)
MORE_THAN_TEXT = (
    "which takes more than text; save its language model as a directory of its own (config.json: this one's "
    f"text_config) and name that; {SERVED}"
)
CHANGES = (
    "in config.json: a token's log-prob would depend on the longest sequence beside it; name a model with "
    "linear, yarn or llama3, or without scaling"
)


def refusal(tmp_path, config):
    (tmp_path / "config.json").write_text(json.dumps(config))
    try:
        model_path(str(tmp_path))
    except ConfigError as error:
        return str(error).removeprefix(f'model = "{tmp_path}" is of type ')
    return "nothing was said"


def test_recurrent_and_linear_attention_is_refused_by_name(tmp_path):
    kinds = "qwen3_next mamba2 rwkv jamba recurrent_gemma falcon_h1 minimax lfm2 qwen3_5"
    for kind in kinds.split():
        assert refusal(tmp_path, {"model_type": kind}) == f'"{kind}", {RECURRENT}'


SERVED_WRONGLY = (
    ({"model_type": "t5"}, f'"t5", an encoder-decoder; a policy is a decoder alone; {SERVED}'),
    (
        {"model_type": "new", "is_encoder_decoder": True},
        f'"new", an encoder-decoder; a policy is a decoder alone; {SERVED}',
    ),
    (
        {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}},
        f'"gemma3", {MORE_THAN_TEXT}',
    ),
    ({"model_type": "qwen2_5_vl", "vision_config": {}}, f'"qwen2_5_vl", {MORE_THAN_TEXT}'),
    ({"model_type": "gpt2"}, f'"gpt2", which is not supported yet; {SERVED}'),
    ({}, f'"unknown", which is not supported yet; {SERVED}'),
    (
        {"model_type": "gemma3_text", "use_bidirectional_attention": True},
        '"gemma3_text", with use_bidirectional_attention in config.json: it does not generate; name a '
        "causal model",
    ),
    (
        {"model_type": "qwen3", "layer_types": ["full_attention", "linear_attention"]},
        '"qwen3", with a layer of type "linear_attention" in config.json; supported: full_attention, '
        "sliding_attention",
    ),
    (
        {"model_type": "llama", "rope_scaling": {"type": "dynamic", "factor": 2.0}},
        f'"llama", with rope_scaling of type "dynamic" {CHANGES}',
    ),
    (
        {"model_type": "phi3", "rope_parameters": {"rope_type": "longrope"}},
        f'"phi3", with rope_parameters of type "longrope" {CHANGES}',
    ),
    (
        {"model_type": "gemma3_text", "rope_parameters": {"full_attention": {"rope_type": "dynamic"}}},
        f'"gemma3_text", with rope_parameters of type "dynamic" {CHANGES}',
    ),
    (
        {"model_type": "llama", "quantization_config": {"quant_method": "gptq"}},
        '"llama", quantized (gptq): only plain weights are trained; name the model that it was made from',
    ),
)


def test_what_would_be_served_wrongly_is_refused(tmp_path):
    for config, line in SERVED_WRONGLY:
        assert refusal(tmp_path, config) == line, config


def test_positions_that_do_not_depend_on_the_batch_are_taken(tmp_path):
    for kind in ("linear", "yarn", "llama3", "default"):
        config = {"model_type": "llama", "rope_scaling": {"rope_type": kind}}
        assert "has no model.safetensors" in refusal(tmp_path, config), kind


def test_the_longest_sequence_of_a_silent_configuration_is_that_of_transformers(tmp_path):
    from transformers import AutoConfig

    for kind, longest in SUPPORTED.items():
        assert AutoConfig.for_model(kind).max_position_embeddings == longest, kind
        (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
        assert max_positions(tmp_path) == longest
