"""Gradients through the fused trunk are those of the model's own modules, and add up over passes."""

from copy import deepcopy

import pytest
import torch
from families import make_family
from fresh import fresh
from torch import nn

from strop.nn import fused_training
from strop.nn.attention import attention
from strop.nn.fused_layer import CHUNK
from strop.nn.loading import CausalLM, load_model

LIKE_LLAMA = ["llama", "mistral", "qwen2", "qwen3", "smollm3"]
IDS = torch.randint(0, 264, (3, 20), generator=torch.Generator().manual_seed(0))


def attend(_layer, q, k, v, rule):
    return attention(q, k, v, rule, is_causal=True)


def hidden(model: CausalLM, ids):
    return model.trunk(ids, torch.arange(ids.shape[1])[None].expand_as(ids), attend)


def gradients(model: CausalLM, ids=IDS):
    """Of a sum of all hidden states with a weight of its own for each, by name."""
    states = hidden(model, ids)
    weights = torch.randn(states.shape, generator=torch.Generator().manual_seed(1), dtype=states.dtype)
    (states * weights).sum().backward()
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def of_modules(model: CausalLM):
    """A copy that runs its modules, whose norms do not go down to float32 as transformers' do."""
    copied = deepcopy(model)
    copied.use_modules()
    for owner in list(copied.module.modules()):
        for name, norm in list(owner.named_children()):
            if type(norm).__name__.endswith("RMSNorm"):
                exact = nn.RMSNorm(norm.weight.shape, eps=norm.variance_epsilon, dtype=norm.weight.dtype)
                exact.weight = norm.weight
                setattr(owner, name, exact)
    return copied


def distance(own: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    """The largest of any parameter, relative to the gradient's norm."""
    assert own.keys() == other.keys()
    return max(float((own[name] - other[name]).norm() / other[name].norm()) for name in own)


@pytest.mark.parametrize(
    "family", [pytest.param(f, marks=[] if f in ("qwen2", "qwen3") else pytest.mark.slow) for f in LIKE_LLAMA]
)
def test_gradients_are_those_of_the_modules(family, tmp_path):
    directory = make_family(family, tmp_path / family)
    for dtype, bound in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        model = load_model(directory, dtype)
        modules = of_modules(model)
        torch.testing.assert_close(hidden(model, IDS), hidden(modules, IDS), rtol=bound, atol=bound)
        assert distance(gradients(model), gradients(modules)) < bound


def test_gradients_add_up_over_passes_and_chunks(tiny):
    ids = IDS.repeat(6, 3)
    assert ids.numel() > CHUNK
    assert fused_training.columns_beside(ids.numel()) > 0
    tiny.module.double()
    modules = of_modules(tiny)
    for model in (tiny, modules):
        gradients(model)
    assert distance(gradients(tiny, ids), gradients(modules, ids)) < 1e-10


def test_gradients_of_one_product_are_not_stored_twice(tiny_dir):
    model = load_model(tiny_dir, torch.float32)
    own = gradients(model).values()
    held = {grad.untyped_storage().data_ptr(): grad.untyped_storage().nbytes() for grad in own}
    assert sum(held.values()) == sum(grad.nbytes for grad in own)
    assert len(held) == len(own) - 2 * 3  # in each of two layers, of q, k, v and of gate, up


def test_a_pass_in_bfloat16_trains_float32_weights_as_closely_as_the_modules_do(tiny_dir):
    model = fresh(tiny_dir)
    modules, wide = of_modules(model), of_modules(model)
    exact = gradients(wide)
    with torch.autocast("cpu", torch.bfloat16):
        own, theirs = gradients(model), gradients(modules)
    assert all(grad.dtype == torch.float32 for grad in own.values())
    assert 0 < distance(own, exact) <= 1.05 * distance(theirs, exact)
