"""The trunk of Llama-like families with few products and few passes over memory between them.

The same numbers as the model's own modules give, but for rounding; other families keep those.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strop.nn.attention import Attend, Rule
from strop.nn.fused_layer import (
    Affine,
    Layer,
    Norm,
    Pass,
    chunks,
    gated,
    heads_of,
    normed,
    rstd,
)
from strop.nn.joined import Joined
from strop.nn.product import add_product, columns, multiplies_bfloat16, product, wide_type

# B rows, T tokens of a row, N = B · T, D hidden size, H heads (K of keys), E head size

_LIKE_LLAMA = ("llama", "mistral", "qwen2", "qwen3", "smollm3")


class FusedTrunk:
    """Runs the trunk of `module`, whose q, k and v, and whose gate and up become views of one matrix each."""

    def __init__(self, module: Any) -> None:
        trunk = module.model
        self._embedding: nn.Parameter = trunk.embed_tokens.weight
        self._rotary = trunk.rotary_emb
        self._norm = _norm(trunk.norm)
        self._layers = [_layer(part, module.config) for part in trunk.layers]

    def __call__(self, ids_BT: Tensor, positions_BT: Tensor, attend: Attend) -> Tensor:
        """Hidden states [B, T, D] after the last norm."""
        x_ND = F.embedding(ids_BT.flatten(), self._embedding)
        shared = self._shared(x_ND, positions_BT.expand_as(ids_BT))
        with torch.autocast("cpu", enabled=False):
            x_DN = columns(x_ND.to(wide_type(x_ND.dtype)))
            for index, layer in enumerate(self._layers):
                heads_NHE = heads_of(layer, _normed(x_DN, layer.norm_in), shared)
                seen_NI = _attended(layer, index, heads_NHE.unflatten(0, ids_BT.shape), attend)
                _add_(x_DN, layer.out, seen_NI.t(), shared)
                for at in chunks(x_DN.shape[1]):
                    _feed_forward_(x_DN[:, at], layer, shared)
            hidden_ND = _normed(x_DN, self._norm).t().to(x_ND.dtype).contiguous()
        return hidden_ND.view(*ids_BT.shape, -1)

    def _shared(self, x_ND: Tensor, positions_BT: Tensor) -> Pass:
        wide = wide_type(x_ND.dtype)
        cos_1NE, sin_1NE = self._rotary(x_ND.to(wide), positions_BT.reshape(1, -1))
        half = cos_1NE.shape[-1] // 2  # both halves are the same
        narrowed = torch.is_autocast_enabled("cpu")
        return Pass(
            cos_N1E=cos_1NE[0, :, None, :half].contiguous(),
            sin_N1E=sin_1NE[0, :, None, :half].contiguous(),
            dtype=torch.bfloat16 if narrowed else x_ND.dtype,
            attends_in=torch.bfloat16 if narrowed and multiplies_bfloat16() else x_ND.dtype,
        )


def fused_trunk(module: Any) -> FusedTrunk | None:
    """None if the family is not like Llama: its own modules run then."""
    config = module.config
    if config.model_type not in _LIKE_LLAMA or config.hidden_act != "silu":
        return None
    return FusedTrunk(module)


def _layer(part: Any, config: Any) -> Layer:
    attention, feed_forward = part.self_attn, part.mlp
    is_qwen3 = config.model_type == "qwen3"
    return Layer(
        num_heads=config.num_attention_heads,
        num_kv_heads=config.num_key_value_heads,
        head_dim=attention.head_dim,
        rule=Rule(attention.scaling, _window(attention, config)),
        rotates=config.model_type != "smollm3" or bool(attention.use_rope),
        norm_in=_norm(part.input_layernorm),
        qkv=_affine(attention.q_proj, attention.k_proj, attention.v_proj),
        head_norms=(_norm(attention.q_norm), _norm(attention.k_norm)) if is_qwen3 else None,
        out=_affine(attention.o_proj),
        norm_middle=_norm(part.post_attention_layernorm),
        gate_up=_affine(feed_forward.gate_proj, feed_forward.up_proj),
        down=_affine(feed_forward.down_proj),
    )


def _window(attention: Any, config: Any) -> int | None:
    if config.model_type == "llama":
        return None
    window: int | None = (config if config.model_type == "mistral" else attention).sliding_window
    return window


def _norm(module: Any) -> Norm:
    return Norm(module.weight, module.variance_epsilon)


def _affine(*modules: Any) -> Affine:
    biases = tuple(module.bias for module in modules if module.bias is not None)
    assert len(biases) in (0, len(modules)), "q, k and v have biases, or none of them has"
    return Affine(Joined(tuple(m.weight for m in modules)), Joined(biases) if biases else None)


def _attended(layer: Layer, index: int, heads_BTHE: Tensor, attend: Attend) -> Tensor:
    sizes = (layer.num_heads, layer.num_kv_heads, layer.num_kv_heads)
    query_BHTE, key_BKTE, value_BKTE = heads_BTHE.transpose(1, 2).split(sizes, 1)
    out_BHTE = attend(index, query_BHTE, key_BKTE, value_BKTE, layer.rule)
    B, H, T, E = out_BHTE.shape
    return out_BHTE.transpose(1, 2).reshape(B * T, H * E)


def _normed(x_DN: Tensor, norm: Norm) -> Tensor:
    return normed(x_DN, rstd(x_DN, norm.eps, dim=0), norm)


def _feed_forward_(x_DN: Tensor, layer: Layer, shared: Pass) -> None:
    h_DN, gate_up = _normed(x_DN, layer.norm_middle), layer.gate_up
    wide_FN = gated(product(gate_up.matrix(shared.dtype), h_DN, gate_up.offsets()))
    _add_(x_DN, layer.down, wide_FN, shared)


def _add_(x_DN: Tensor, affine: Affine, y_IN: Tensor, shared: Pass) -> None:
    add_product(x_DN, affine.matrix(shared.dtype), y_IN, affine.offsets(), out_ON=x_DN)
