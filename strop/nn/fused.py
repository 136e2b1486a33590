"""The trunk of Llama-like families with few products and few passes over memory between them.

The same numbers as the model's own modules give, but for rounding; other families keep those.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strop.nn import fused_inference, fused_training
from strop.nn.attention import Attend, Rule
from strop.nn.fused_layer import Affine, Layer, Norm, Pass
from strop.nn.joined import Joined
from strop.nn.product import columns, multiplies_bfloat16, wide_type

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
        part = fused_training if torch.is_grad_enabled() else fused_inference
        num_tokens = ids_BT.numel()
        more = part.columns_beside(num_tokens)
        x_ND = F.embedding(F.pad(ids_BT.flatten(), (0, more)), self._embedding)
        positions_N = F.pad(positions_BT.expand_as(ids_BT).flatten(), (0, more))
        shared = self._shared(x_ND, positions_N, num_tokens)
        with torch.autocast("cpu", enabled=False):
            x_DN = columns(x_ND.to(wide_type(x_ND.dtype)))
            for index, layer in enumerate(self._layers):
                x_DN, *heads = part.heads(x_DN, layer, shared)
                q, k, v = (heads_NHE.unflatten(0, ids_BT.shape).transpose(1, 2) for heads_NHE in heads)
                seen_BTHE = attend(index, q, k, v, layer.rule).transpose(1, 2)
                x_DN = part.rest(x_DN, seen_BTHE.flatten(2).flatten(0, 1), layer, shared)
            hidden_ND = part.last(x_DN, self._norm)[:num_tokens].to(x_ND.dtype)
        return hidden_ND.view(*ids_BT.shape, -1)

    def _shared(self, x_ND: Tensor, positions_N: Tensor, num_tokens: int) -> Pass:
        wide = wide_type(x_ND.dtype)
        cos_1NE, sin_1NE = self._rotary(x_ND.to(wide), positions_N[None])
        half = cos_1NE.shape[-1] // 2  # both halves are the same
        narrowed = torch.is_autocast_enabled("cpu")
        return Pass(
            num_tokens=num_tokens,
            cos_N1E=cos_1NE[0, :, None, :half].contiguous(),
            sin_N1E=sin_1NE[0, :, None, :half].contiguous(),
            dtype=torch.bfloat16 if narrowed else x_ND.dtype,
            attends_in=torch.bfloat16 if narrowed and multiplies_bfloat16() else x_ND.dtype,
        )


def fused_trunk(module: Any) -> FusedTrunk | None:
    """None if the family is not like Llama: its own modules run then."""
    return FusedTrunk(module) if is_like_llama(module.config) else None


def is_like_llama(config: Any) -> bool:
    """Whether models with this config have a fused trunk."""
    return config.model_type in _LIKE_LLAMA and config.hidden_act == "silu"


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
        head_norms=(_norm(attention.q_norm), _norm(attention.k_norm)) if is_qwen3 else (),
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
