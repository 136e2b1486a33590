"""The fused trunk gives what the model's own modules give, whoever holds its weights."""

from copy import deepcopy

import pytest
import torch
from families import make_family
from fresh import fresh

from strop.config.tree import Lora
from strop.nn.attention import attention
from strop.nn.fused_layer import CHUNK
from strop.nn.loading import CausalLM, load_model
from strop.nn.lora import Adapters
from strop.nn.product import FEW
from strop.nn.saving import read_weights, save_model

LIKE_LLAMA = ["llama", "mistral", "qwen2", "qwen3", "smollm3"]
IDS = torch.randint(0, 264, (3, 20), generator=torch.Generator().manual_seed(0))
FEW_IDS = IDS[:2, : FEW // 3]


def attend(_layer, q, k, v, rule):
    return attention(q, k, v, rule, is_causal=True)


def places(ids):
    return torch.arange(ids.shape[1])[None].expand_as(ids)


def hidden(model: CausalLM, ids=IDS):
    return model.trunk(ids, places(ids), attend)


def of_modules(model: CausalLM, ids=IDS):
    model = deepcopy(model)
    model.use_modules()
    return hidden(model, ids)


@pytest.fixture(params=[pytest.param(f, marks=[] if f == "qwen2" else pytest.mark.slow) for f in LIKE_LLAMA])
def model(request, tmp_path):
    return load_model(make_family(request.param, tmp_path / request.param), torch.float32)


@torch.no_grad()
def test_hidden_states_are_those_of_the_modules(model):
    for ids in (IDS, FEW_IDS):
        expected = of_modules(model, ids)
        torch.testing.assert_close(hidden(model, ids), expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(hidden(deepcopy(model), ids), expected, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_many_tokens_go_through_in_chunks(tiny):
    ids = IDS.repeat(9, 3)
    assert ids.numel() > CHUNK
    torch.testing.assert_close(hidden(tiny, ids), of_modules(tiny, ids), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_rows_at_places_of_their_own_are_rotated_each_by_its_own(tiny):
    at = torch.tensor([[7], [0], [31]])
    rows = tiny.trunk(IDS[:, :1], at, attend)
    tiny.use_modules()
    torch.testing.assert_close(rows, tiny.trunk(IDS[:, :1], at, attend), rtol=1e-5, atol=1e-5)


def test_matrices_of_one_product_are_neighbours_and_not_stored_twice(tiny_dir):
    model = load_model(tiny_dir, torch.float32)
    attention_part = model.module.model.layers[0].self_attn
    names = ("q_proj", "k_proj", "v_proj")
    memory = {getattr(attention_part, name).weight.untyped_storage().data_ptr() for name in names}
    assert len(memory) == 1
    stored = {
        p.untyped_storage().data_ptr(): p.untyped_storage().nbytes() for _, p in model.named_parameters()
    }
    assert sum(stored.values()) == sum(p.nbytes for _, p in model.named_parameters())


@torch.no_grad()
def test_weights_that_are_written_in_place_are_used(tiny, tmp_path):
    before = hidden(tiny)
    save_model(tiny, tmp_path)
    for _, parameter in tiny.named_parameters():
        parameter.mul_(1.1)
    torch.testing.assert_close(hidden(tiny), of_modules(tiny), rtol=1e-5, atol=1e-5)
    read_weights(tiny, tmp_path)
    assert torch.equal(hidden(tiny), before)


@torch.no_grad()
def test_a_matrix_that_lies_elsewhere_is_used_too(tiny):
    weight = tiny.module.model.layers[0].self_attn.k_proj.weight
    weight.data = weight * 1.5
    torch.testing.assert_close(hidden(tiny), of_modules(tiny), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_adapters_are_not_passed_over(tiny, tiny_dir):
    plain = hidden(fresh(tiny_dir))
    adapters = Adapters(tiny, Lora(rank=2), seed=1)
    for _, parameter in adapters.parameters():
        parameter.fill_(0.1)
    assert (hidden(tiny) - plain).abs().max() > 1e-3


@torch.no_grad()
def test_bfloat16_weights_give_a_closer_result_than_bfloat16_modules(tiny_dir):
    exact = hidden(fresh(tiny_dir))
    model = load_model(tiny_dir, torch.bfloat16)
    fused, modules = hidden(model), of_modules(model)
    assert fused.dtype == modules.dtype == torch.bfloat16
    assert (fused - exact).norm() <= 1.05 * (modules - exact).norm()


@torch.no_grad()
def test_autocast_computes_as_closely_as_the_modules_under_it(tiny_dir):
    model = fresh(tiny_dir)
    exact = hidden(model)
    with torch.autocast("cpu", torch.bfloat16):
        fused, modules = hidden(model), of_modules(model)
    assert 0 < (fused - exact).norm() <= 1.05 * (modules - exact).norm()
