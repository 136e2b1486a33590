"""`Shape`: what the memory of a model depends on, taken from the model itself without its weights."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from strop.config.tree import Lora
from strop.nn.fused import is_like_llama
from strop.nn.loading import CausalLM, outline


@dataclass(frozen=True, slots=True)
class Shape:
    """Numbers of values; a byte count is four times that in float32."""

    weights: int
    layers: int
    hidden: int
    vocabulary: int
    widest: int
    """Of a token's values between two products: the largest tensors of a pass have this width."""
    cached: int
    """Keys and values of a token, in all layers."""
    kept: int
    """What the backward pass needs of a token, in all layers."""
    adapters: int
    """Weights of the low-rank adapters; 0 without."""
    adapted: int
    """Weights that have one."""
    in_products: int
    """Weights that are one side of a product, the head aside: what autocast makes copies of."""
    guests: int = 0
    """Bytes of other models that the reward asks within the run: their weights and KV caches."""
    teachers: int = 0
    """Weights of the models that teach."""
    critic: int = 0
    """Weights of a critic with a model of its own."""


def weights_of(paths: Iterable[Path | None]) -> int:
    """Of several models, each counted once; None is none of its own."""
    models = [outline(path) for path in dict.fromkeys(paths) if path is not None]
    return sum(p.numel() for model in models for _, p in model.named_parameters())


def shape_of(path: Path, lora: Lora) -> Shape:
    """Of the model in `path` with the adapters of `lora`. Raises ConfigError if it cannot be loaded."""
    model = outline(path)
    linear = {
        name: layer
        for name, layer in model.module.named_modules()
        if isinstance(layer, nn.Linear) and layer.weight is not model.head_VD
    }
    adapted = [layer for name, layer in linear.items() if lora.rank and _is_target(name, lora)]
    facts = _facts(model)
    return Shape(
        weights=sum(p.numel() for _, p in model.named_parameters()),
        layers=model.num_layers,
        hidden=model.head_VD.shape[1],
        vocabulary=model.head_VD.shape[0],
        widest=max(_inner(facts), model.head_VD.shape[1]),
        cached=model.num_layers * 2 * model.num_kv_heads * model.head_dim,
        kept=_kept(model, facts, is_adapted=lora.rank > 0),
        adapters=sum(lora.rank * (layer.in_features + layer.out_features) for layer in adapted),
        adapted=sum(layer.weight.numel() for layer in adapted),
        in_products=sum(
            p.numel() for name, p in model.named_parameters() if p.ndim > 1 and "layers." in name
        ),
    )


def _is_target(name: str, lora: Lora) -> bool:
    return lora.targets == ["all-linear"] or any(name.endswith(target) for target in lora.targets)


def _facts(model: CausalLM) -> dict[str, Any]:
    facts: dict[str, Any] = model.module.config.to_dict()  # type: ignore[operator, union-attr]
    return facts


def _inner(facts: dict[str, Any]) -> int:
    """Width between the products of the feed-forward part, of all experts that a token goes to."""
    dense, experts = int(facts["intermediate_size"]), facts.get("num_experts_per_tok")
    if experts is None:
        return dense
    shared = int(facts.get("shared_expert_intermediate_size") or 0)
    return int(experts) * int(facts.get("moe_intermediate_size", dense)) + shared


def _kept(model: CausalLM, facts: dict[str, Any], *, is_adapted: bool) -> int:
    queries, keys = facts["num_attention_heads"] * model.head_dim, model.num_kv_heads * model.head_dim
    if is_adapted or not is_like_llama(model.module.config):
        return _kept_by_modules(model, facts, queries, keys)
    # The inputs of the norms, query, key and value, the output of attention and its concatenation, gate, up;
    # queries and keys a second time where they have norms.
    hidden, normed = model.head_VD.shape[1], (queries + keys) * int(facts["model_type"] == "qwen3")
    own = 2 * hidden + 3 * queries + 2 * keys + normed + 2 * _inner(facts)
    return int(model.num_layers * own + hidden)


def _kept_by_modules(model: CausalLM, facts: dict[str, Any], queries: int, keys: int) -> int:
    """For each token: three tensors a norm (its input, that normalised, its output), query, key and value as
    rotated, the output of attention and its concatenation, four tensors of the feed-forward part."""
    widths = {"q_norm": queries, "k_norm": keys}
    norms = 0
    for name, parameter in model.named_parameters():
        *_, owner, kind = name.split(".")
        if owner.endswith("norm") and kind == "weight":
            is_whole = parameter.numel() != model.head_dim
            norms += 3 * (parameter.numel() if is_whole else widths.get(owner, parameter.numel()))
    return norms + model.num_layers * int(3 * queries + 2 * keys + 4 * _inner(facts))
