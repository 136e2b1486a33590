"""Which models are served, and why others are not: told from config.json alone, without torch."""

from pathlib import Path
from typing import Any

from strop.errors import ConfigError

SUPPORTED = {
    "gemma": 8192,
    "gemma2": 8192,
    "gemma3_text": 131072,
    "llama": 2048,
    "mistral": 131072,
    "mixtral": 131072,
    "olmo2": 2048,
    "olmo3": 2048,
    "phi3": 4096,
    "qwen2": 32768,
    "qwen2_moe": 32768,
    "qwen3": 32768,
    "qwen3_moe": 32768,
    "smollm3": 32768,
}
"""Types of models whose every layer is softmax attention over the past, and the longest sequence of each when
its config.json does not name one: transformers leaves out what equals its default."""

WITH_EXPERTS = frozenset({"mixtral", "qwen2_moe", "qwen3_moe"})
"""Of these, types that send each token to some of many feed-forward parts, whose weights are one tensor."""

_RECURRENT = (
    "bamba falcon_h1 falcon_mamba glm5_next granitemoehybrid inkling jamba kimi_linear lfm2 lfm2_moe mamba "
    "mamba2 minimax nemotron_h olmo_hybrid qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_next "
    "qwen4_exp recurrent_gemma rwkv rwkv7 xlstm zamba zamba2 zaya"
)
_ENCODER_DECODER = (
    "bart blenderbot longt5 m2m_100 marian mbart mt5 mvp nllb_moe pegasus plbart prophetnet "
    "switch_transformers t5 t5gemma t5gemma2 umt5 whisper"
)
_MANY_MODES = (
    "gemma3 gemma3n gemma4 internvl kimi_vl llama4 llava llava_next minicpmv mistral3 mllama paligemma "
    "phi4_multimodal qwen2_5_omni qwen2_5_vl qwen2_audio qwen2_vl qwen3_omni_moe qwen3_vl qwen3_vl_moe "
    "smolvlm"
)
_CAUSAL_LAYERS = ("full_attention", "sliding_attention")
_CHANGING_ROPE = ("dynamic", "longrope", "su")
"""Their frequencies follow the longest sequence that a forward pass happens to hold."""


def check_family(config: dict[str, Any], path: Path) -> None:
    """Raises ConfigError that names type and reason, if a model with this config.json is not served."""
    reason = _why_not(config)
    if reason is not None:
        kind = config.get("model_type", "unknown")
        raise ConfigError(f'model = "{path}" is of type "{kind}", {reason}')


def _why_not(config: dict[str, Any]) -> str | None:
    kind = config.get("model_type", "unknown")
    if kind in _RECURRENT.split():
        return (
            "whose layers are not all softmax attention (recurrent, linear or convolutional): the engine's "
            f"cache and shared prompts do not serve them; {_served()}"
        )
    if kind in _ENCODER_DECODER.split() or config.get("is_encoder_decoder"):
        return f"an encoder-decoder; a policy is a decoder alone; {_served()}"
    if kind in _MANY_MODES.split() or "text_config" in config or "vision_config" in config:
        return (
            "which takes more than text; save its language model as a directory of its own (config.json: "
            f"this one's text_config) and name that; {_served()}"
        )
    if kind not in SUPPORTED:
        return f"which is not supported yet; {_served()}"
    return _odd_attention(config) or _odd_rope(config) or _quantized(config)


def _served() -> str:
    return f"supported: {', '.join(sorted(SUPPORTED))}"


def _odd_attention(config: dict[str, Any]) -> str | None:
    if config.get("use_bidirectional_attention"):
        return "with use_bidirectional_attention in config.json: it does not generate; name a causal model"
    for layer in config.get("layer_types") or ():
        if layer not in _CAUSAL_LAYERS:
            return f'with a layer of type "{layer}" in config.json; supported: {", ".join(_CAUSAL_LAYERS)}'
    return None


def _odd_rope(config: dict[str, Any]) -> str | None:
    for name in ("rope_parameters", "rope_scaling"):
        given = config.get(name) or {}
        # Families with two kinds of layers have a table for each.
        for table in (given, *(value for value in given.values() if isinstance(value, dict))):
            kind = table.get("rope_type", table.get("type", "default"))
            if kind in _CHANGING_ROPE:
                return (
                    f'with {name} of type "{kind}" in config.json: a token\'s log-prob would depend on the '
                    "longest sequence beside it; name a model with linear, yarn or llama3, or without scaling"
                )
    return None


def _quantized(config: dict[str, Any]) -> str | None:
    given = config.get("quantization_config")
    if not given:
        return None
    return (
        f"quantized ({given.get('quant_method', 'unknown method')}): only plain weights are trained; name "
        "the model that it was made from"
    )
