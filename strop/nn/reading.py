"""A model directory read straight into `llama.Llama`, where that is what transformers would make of it.

Every key of config.json must be one whose meaning is known here, of the type that it should have, and the
files must hold exactly the weights that follow. Whatever else there is goes to transformers, which takes it
or says why not: nothing is refused here.
"""

from pathlib import Path
from typing import Any, TypeGuard

import torch
from safetensors import safe_open
from torch import nn

from strop.nn.llama import Llama, LlamaShape
from strop.nn.weight_files import Stored, read_object, stored_tensors

_CLASSES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
_COUNTS = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    *("num_key_value_heads", "max_position_embeddings"),
)
_PLAIN = {
    **dict.fromkeys(("rms_norm_eps", "attention_dropout", "initializer_range"), (int, float)),
    **dict.fromkeys(("bos_token_id", "pad_token_id", "unk_token_id", "sliding_window"), (int, type(None))),
    **dict.fromkeys(("use_cache", "tie_word_embeddings", "use_sliding_window"), (bool,)),
    **dict.fromkeys(("attention_bias", "mlp_bias", "is_llama_config", "rope_interleaved"), (bool,)),
    **dict.fromkeys(("transformers_version", "_name_or_path", "_model_name_or_path"), (str,)),
    **dict.fromkeys(("model_type", "dtype", "torch_dtype", "hidden_act"), (str,)),
    **dict.fromkeys((*_COUNTS, "head_dim", "pretraining_tp", "max_window_layers"), (int,)),
    **dict.fromkeys(("architectures", "layer_types"), (list,)),
    **dict.fromkeys(("rope_parameters", "rope_scaling"), (dict, type(None))),
    "rope_theta": (int, float),
    "eos_token_id": (int, list, type(None)),
}
"""Keys of config.json, and what they may hold here."""
_FLOATS = frozenset({"F32", "F16", "BF16"})


def shape_of_llama(path: Path) -> LlamaShape | None:
    """What the directory holds, or None: it is for transformers to judge."""
    config = read_object(path / "config.json")
    if (path / "adapter_config.json").exists():  # transformers would apply the adapter
        return None
    if not _is_plain(config) or not _is_whole(config):
        return None
    return _shape(config)


def read_llama(path: Path, shape: LlamaShape, *, dtype: torch.dtype | None) -> Llama | None:
    """The model, its weights in place unless `dtype` is None. None: the files do not hold exactly these."""
    model = Llama(shape)
    wanted = {name: tuple(p.shape) for name, p in model.named_parameters()}
    stored = stored_tensors(path)
    if stored is None or not _are_those(stored, wanted):
        return None
    if dtype is not None:
        for file in sorted({tensor.file for tensor in stored.values()}):
            _fill(model, file, dtype)
        model.tie()
    return model


def _fill(model: Llama, file: Path, dtype: torch.dtype) -> None:
    """Put the weights of a file in their places. Copied: what is only mapped would change with the file, and
    its pages would stay beside the matrices that are made of several."""
    with safe_open(file, framework="pt") as opened:
        for name in opened.keys():  # noqa: SIM118 - no dict
            owner, _, kind = name.rpartition(".")
            weight = nn.Parameter(opened.get_tensor(name).to(dtype, copy=True))
            model.get_submodule(owner).register_parameter(kind, weight)


def _are_those(stored: dict[str, Stored], wanted: dict[str, tuple[int, ...]]) -> bool:
    shapes = {name: tensor.shape for name, tensor in stored.items()}
    return shapes == wanted and {tensor.dtype for tensor in stored.values()} <= _FLOATS


def _is_plain(config: dict[str, Any]) -> bool:
    """Whether each key is known and of its type; True and False are no numbers."""
    return all(key in _PLAIN and type(value) in _PLAIN[key] for key, value in config.items())


def _is_whole(config: dict[str, Any]) -> bool:
    """Whether what the shape follows from is there and consistent, and asks for nothing not done here."""
    kind, needed = config.get("model_type"), (*_COUNTS, "rms_norm_eps", "hidden_act", "tie_word_embeddings")
    if kind not in _CLASSES or not all(key in config for key in needed):
        return False
    return all(
        (
            config["hidden_act"] == "silu",
            config.get("architectures") == [_CLASSES[kind]],
            all(config[name] > 0 for name in _COUNTS),
            config["hidden_size"] % config["num_attention_heads"] == 0,
            config["num_attention_heads"] % config["num_key_value_heads"] == 0,
            config.get("head_dim", 2) > 0 and config.get("head_dim", 2) % 2 == 0,
            kind != "qwen3" or "head_dim" in config,
            _has_no_window(config),
            _pads_inside(config),
            _theta(config) is not None,
        )
    )


def _has_no_window(config: dict[str, Any]) -> bool:
    layers = config.get("layer_types", [])
    if config["model_type"] == "mistral" and "sliding_window" not in config:
        return False  # its default is one of 4096
    unused = config["model_type"].startswith("qwen") and not config.get("use_sliding_window", False)
    return (unused or config.get("sliding_window") is None) and all(
        kind == "full_attention" for kind in layers
    )


def _pads_inside(config: dict[str, Any]) -> bool:
    pad = config.get("pad_token_id")
    return pad is None or 0 <= pad < config["vocab_size"]


def _theta(config: dict[str, Any]) -> float | None:
    """The base of the rotation if it is the plain one."""
    rope = config.get("rope_parameters")
    if rope is None and config.get("rope_scaling") is None and "rope_theta" in config:
        return float(config["rope_theta"])
    if rope is None or "rope_theta" in config or "rope_scaling" in config:
        return None
    is_plain = set(rope) == {"rope_type", "rope_theta"} and rope["rope_type"] == "default"
    return float(rope["rope_theta"]) if is_plain and _is_number(rope["rope_theta"]) else None


def _is_number(value: object) -> TypeGuard[float]:
    return type(value) in (int, float)


def _shape(config: dict[str, Any]) -> LlamaShape:
    kind, theta = config["model_type"], _theta(config)
    assert theta is not None
    # Of the four only two read these keys: a bias is a matter of the family.
    asks_for_bias = kind in ("llama", "qwen3") and config.get("attention_bias", False)
    return LlamaShape(
        **{name: config[name] for name in (*_COUNTS, "rms_norm_eps", "model_type", "tie_word_embeddings")},
        head_dim=config.get("head_dim", config["hidden_size"] // config["num_attention_heads"]),
        rope_theta=theta,
        bias_qkv=asks_for_bias or kind == "qwen2",
        bias_out=asks_for_bias,
        bias_mlp=kind == "llama" and config.get("mlp_bias", False),
        norms_heads=kind == "qwen3",
    )
