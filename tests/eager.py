"""transformers' own forward pass over the tensors of a model of ours: what it must agree with."""

from pathlib import Path
from typing import Any

import torch

from strop.nn.loading import CausalLM


def of_transformers(directory: Path, **keys: Any) -> Any:
    """transformers' model of a directory, float32 unless `dtype` says otherwise.

    Imported on use: collecting the tests needs none of it.
    """
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(directory, **{"dtype": torch.float32, **keys})


def eager(model: CausalLM) -> Any:
    """transformers' model with its eager attention; parameters and gradients are those of `model`."""
    theirs = of_transformers(model.source, dtype=model.dtype, attn_implementation="eager").eval()
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
