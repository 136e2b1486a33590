"""transformers' own forward pass over the tensors of a model of ours: what it must agree with."""

from typing import Any

import torch
from transformers import AutoModelForCausalLM

from strop.nn.loading import CausalLM


def eager(model: CausalLM) -> Any:
    """transformers' model with its eager attention; parameters and gradients are those of `model`."""
    theirs = AutoModelForCausalLM.from_pretrained(
        model.source, dtype=model.dtype, attn_implementation="eager"
    ).eval()
    theirs.model.embed_tokens.padding_idx = None
    own = model.named_parameters()
    assert [(name, p.shape) for name, p in own] == [(name, p.shape) for name, p in theirs.named_parameters()]
    for name, parameter in own:
        owner, _, kind = name.rpartition(".")
        setattr(theirs.get_submodule(owner), kind, parameter)
    theirs.tie_weights()
    assert not any(theirs.get_parameter(name) is not parameter for name, parameter in own)
    return theirs


def eager_logits(model: CausalLM, ids: list[int]) -> torch.Tensor:
    """[T, V], float32, of one sequence."""
    with torch.no_grad():
        logits: torch.Tensor = eager(model)(input_ids=torch.tensor([ids])).logits[0].float()
    return logits
