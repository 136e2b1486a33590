"""Llama's layers, and those of its kin that differ in a bias or a norm: transformers' classes without
transformers, whose import takes longer than all else that a run does before its first token.

Names of modules and parameters, their order and every operation are transformers' own, so that weights,
adapters and results are equal bit for bit (`tests/unit/nn/test_llama.py`). `reading.py` says which
directories qualify.
"""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from strop.nn.attention import Attend, Rule

# B rows, T tokens, H query heads, K key heads, D hidden size or head size


@dataclass(frozen=True, slots=True)
class LlamaShape:
    """What config.json says of a model, by transformers' names."""

    model_type: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope_theta: float
    tie_word_embeddings: bool
    bias_qkv: bool = False
    bias_out: bool = False
    bias_mlp: bool = False
    norms_heads: bool = False
    """Queries and keys are normalised head by head, as in Qwen3."""
    hidden_act: str = "silu"
    sliding_window: None = None

    def to_dict(self) -> dict[str, Any]:
        """As transformers' configs have it."""
        return asdict(self)


class Output(NamedTuple):
    """Of the trunk, by transformers' name."""

    last_hidden_state: Tensor


class Linear(nn.Linear):
    """Without values at first: they come from files, and drawing some takes longer than reading them."""

    def __init__(self, inner: int, outer: int, *, bias: bool) -> None:
        super().__init__(inner, outer, bias=bias, device="meta")

    def reset_parameters(self) -> None:
        pass


class Embedding(nn.Embedding):
    """The same of a table."""

    def __init__(self, rows: int, size: int) -> None:
        super().__init__(rows, size, device="meta")

    def reset_parameters(self) -> None:
        pass


class RMSNorm(nn.Module):
    """In float32, whatever the dtype of the model."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, device="meta"))
        self.variance_epsilon = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * wide.to(x.dtype)


class Rotary(nn.Module):
    """Cosine and sine of each position, float32 until they are done."""

    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        powers = torch.arange(0, shape.head_dim, 2, dtype=torch.float) / shape.head_dim
        self.inv_freq = nn.Buffer(1.0 / (shape.rope_theta**powers), persistent=False)

    @torch.no_grad()
    def forward(self, x_BTD: Tensor, positions_BT: Tensor) -> tuple[Tensor, Tensor]:
        """In the dtype of `x_BTD`."""
        half = positions_BT[..., None].float() * self.inv_freq
        angles = torch.cat((half, half), -1)
        return angles.cos().to(x_BTD.dtype), angles.sin().to(x_BTD.dtype)


def rotated(x_BHTD: Tensor, cos_B1TD: Tensor, sin_B1TD: Tensor) -> Tensor:
    """Queries or keys turned by their positions."""
    # In transformers' order, which is also that in which gradients are added up.
    straight_BHTD, half = x_BHTD * cos_B1TD, x_BHTD.shape[-1] // 2
    left, right = x_BHTD[..., :half], x_BHTD[..., half:]
    return straight_BHTD + (torch.cat((-right, left), -1) * sin_B1TD)


class SelfAttention(nn.Module):
    """Products around the attention of whoever runs the forward pass."""

    def __init__(self, shape: LlamaShape, layer_idx: int) -> None:
        super().__init__()
        self.layer_idx, self.head_dim = layer_idx, shape.head_dim
        self.scaling, self.sliding_window = shape.head_dim**-0.5, shape.sliding_window
        queries, keys = (
            heads * shape.head_dim for heads in (shape.num_attention_heads, shape.num_key_value_heads)
        )
        self.q_proj = Linear(shape.hidden_size, queries, bias=shape.bias_qkv)
        self.k_proj = Linear(shape.hidden_size, keys, bias=shape.bias_qkv)
        self.v_proj = Linear(shape.hidden_size, keys, bias=shape.bias_qkv)
        self.o_proj = Linear(queries, shape.hidden_size, bias=shape.bias_out)
        self.norms_heads = shape.norms_heads
        if shape.norms_heads:
            self.q_norm = RMSNorm(shape.head_dim, shape.rms_norm_eps)
            self.k_norm = RMSNorm(shape.head_dim, shape.rms_norm_eps)

    def forward(self, x_BTD: Tensor, rotary: tuple[Tensor, Tensor], attend: Attend) -> Tensor:
        split = (*x_BTD.shape[:-1], -1, self.head_dim)
        query, key = self.q_proj(x_BTD).view(split), self.k_proj(x_BTD).view(split)
        if self.norms_heads:
            query, key = self.q_norm(query), self.k_norm(key)
        value_BKTD = self.v_proj(x_BTD).view(split).transpose(1, 2)
        cos, sin = (part.unsqueeze(1) for part in rotary)
        query_BHTD = rotated(query.transpose(1, 2), cos, sin)
        key_BKTD = rotated(key.transpose(1, 2), cos, sin)
        out = attend(self.layer_idx, query_BHTD, key_BKTD, value_BKTD, Rule(self.scaling)).transpose(1, 2)
        return self.o_proj(out.reshape(*x_BTD.shape[:-1], -1))


class FeedForward(nn.Module):
    """The gated part of a layer."""

    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        wide, bias = shape.intermediate_size, shape.bias_mlp
        self.gate_proj = Linear(shape.hidden_size, wide, bias=bias)
        self.up_proj = Linear(shape.hidden_size, wide, bias=bias)
        self.down_proj = Linear(wide, shape.hidden_size, bias=bias)
        self.act_fn = F.silu

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x_BTD)) * self.up_proj(x_BTD))


class Layer(nn.Module):
    """Attention and feed-forward, each behind a norm and beside a shortcut."""

    def __init__(self, shape: LlamaShape, layer_idx: int) -> None:
        super().__init__()
        self.self_attn = SelfAttention(shape, layer_idx)
        self.mlp = FeedForward(shape)
        self.input_layernorm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)

    def forward(self, x_BTD: Tensor, rotary: tuple[Tensor, Tensor], attend: Attend) -> Tensor:
        x_BTD = x_BTD + self.self_attn(self.input_layernorm(x_BTD), rotary, attend)
        out_BTD: Tensor = x_BTD + self.mlp(self.post_attention_layernorm(x_BTD))
        return out_BTD


class Trunk(nn.Module):
    """Everything but the head."""

    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        self.embed_tokens = Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList([Layer(shape, i) for i in range(shape.num_hidden_layers)])
        self.norm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.rotary_emb = Rotary(shape)

    def forward(
        self,
        input_ids: Tensor,
        position_ids: Tensor,
        attend: Attend,
        **_: bool,  # what else transformers' own need to be told
    ) -> Output:
        x_BTD = self.embed_tokens(input_ids)
        rotary = self.rotary_emb(x_BTD, position_ids)
        for layer in self.layers:
            x_BTD = layer(x_BTD, rotary, attend)
        return Output(self.norm(x_BTD))


class Llama(nn.Module):
    """Trunk and head, whose weights have names and shapes only until they are put in.

    The head of a model that ties them is the embedding itself.
    """

    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        self.config = shape
        self.model = Trunk(shape)
        self.lm_head = Linear(shape.hidden_size, shape.vocab_size, bias=False)
        self.tie()

    def tie(self) -> None:
        """Make the head the embedding, if the model has it so: after weights were put in their places."""
        if self.config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight
