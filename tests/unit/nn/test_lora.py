"""Adapters: nothing at first, alone in being trained, off for the reference, merged for the engine."""

import numpy as np
import pytest
import torch
from eager import of_transformers
from families import make_family
from fresh import fresh

from strop.config.tree import Lora, Train
from strop.errors import ConfigError
from strop.nn.attention import attention
from strop.nn.lora import FOLDER, Adapters, check_lora
from strop.train.optimizer import Optimizer

SECTION = Lora(rank=4, alpha=8)
IDS = torch.tensor([[72, 101, 108, 108, 111]])


def hidden(model):
    def attend(_layer, q, k, v, rule):
        return attention(q, k, v, rule, is_causal=True)

    return model.trunk(IDS, torch.arange(5)[None], attend)


@pytest.fixture
def moved(tiny):
    """Adapters that have learnt something."""
    adapters = Adapters(tiny, SECTION, seed=3)
    for step in range(3):
        hidden(tiny).pow(2).mean().backward()
        optimizer = Optimizer(adapters.parameters(), Train().optim.model_copy(update={"lr": 0.02}), total=3)
        optimizer.updates = step
        optimizer.clip()
        optimizer.step()
        optimizer.zero_grad()
    return adapters


def test_new_adapters_change_nothing(tiny, tiny_dir):
    adapters = Adapters(tiny, SECTION, seed=3)
    plain = dict(fresh(tiny_dir).named_parameters())
    merged = dict(adapters.merged())
    assert list(merged) == list(plain)
    assert all(torch.equal(merged[name], plain[name]) for name in plain)


def test_one_seed_makes_one_start(tiny_dir):
    models = [fresh(tiny_dir) for _ in range(3)]
    one, two, other = (
        Adapters(m, SECTION, seed=s).parameters() for m, s in zip(models, (1, 1, 2), strict=True)
    )
    assert all(torch.equal(p, q) for (_, p), (_, q) in zip(one, two, strict=True))
    assert any(not torch.equal(p, q) for (_, p), (_, q) in zip(one, other, strict=True))


def test_every_matrix_but_embedding_and_head_has_an_adapter_and_nothing_else_is_trained(tiny):
    names = [name for name, _ in Adapters(tiny, SECTION, seed=3).parameters()]
    matrices = 2 * 7  # layers × (q, k, v, o, gate, up, down)
    assert len(names) == 2 * matrices
    assert all(".lora_A." in name or ".lora_B." in name for name in names)


def test_named_targets_alone_get_one(tiny):
    adapters = Adapters(tiny, Lora(rank=2, targets=["q_proj", "v_proj"]), seed=3)
    assert {name.split(".lora_")[0].rpartition(".")[2] for name, _ in adapters.parameters()} == {
        "q_proj",
        "v_proj",
    }


def test_merged_weights_give_what_the_adapted_model_gives(moved, tiny, tiny_dir):
    engine = fresh(tiny_dir)
    moved.lend(engine)
    for name, tensor in moved.merged():
        dict(engine.named_parameters())[name].data = tensor
    with torch.no_grad():
        difference = (hidden(engine) - hidden(tiny)).abs().max()
        with moved.off():
            changed = (hidden(engine) - hidden(tiny)).abs().max()
    assert difference < 1e-5 < 1e-3 < changed


def test_weights_without_adapter_are_lent_not_copied(moved, tiny, tiny_dir):
    engine = fresh(tiny_dir)
    moved.lend(engine)
    own, lent = dict(tiny.module.named_parameters()), dict(engine.named_parameters())
    assert lent["model.embed_tokens.weight"].data_ptr() == own["model.embed_tokens.weight"].data_ptr()
    adapted = "model.layers.0.self_attn.q_proj"
    assert lent[f"{adapted}.weight"].data_ptr() != own[f"{adapted}.base_layer.weight"].data_ptr()


def test_off_is_the_model_that_training_began_with(moved, tiny, tiny_dir):
    beginning = fresh(tiny_dir)
    beginning.use_modules()  # as the adapted model: bits are compared
    with torch.no_grad(), moved.off():
        assert torch.equal(hidden(tiny), hidden(beginning))
    assert all(p.requires_grad for _, p in moved.parameters())


def test_the_adapter_alone_loads_in_peft_over_the_first_model(moved, tiny, tiny_dir, tmp_path):
    import peft

    moved.save(tmp_path)
    base = of_transformers(tiny_dir)
    theirs = peft.PeftModel.from_pretrained(base, tmp_path / FOLDER)
    merged = of_transformers(tmp_path)
    with torch.no_grad():
        expected = theirs(input_ids=IDS).logits.numpy()
        np.testing.assert_allclose(merged(input_ids=IDS).logits.numpy(), expected, atol=1e-5)
        ours = (hidden(tiny) @ tiny.head_VD.T).numpy()
    np.testing.assert_allclose(ours, expected, atol=1e-4)


def test_a_target_that_fits_no_matrix_is_refused_with_those_there_are(tiny_dir):
    with pytest.raises(ConfigError) as caught:
        check_lora(Lora(rank=4, targets=["q_proj", "c_attn"]), tiny_dir)
    assert str(caught.value) == (
        'train.lora.targets = "c_attn" fits no matrix of the model that can have an adapter: down_proj, '
        'gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj; or give ["all-linear"] alone'
    )


def test_experts_take_no_adapters_their_attention_does(tmp_path):
    directory = make_family("qwen3_moe", tmp_path / "moe")
    with pytest.raises(ConfigError) as caught:
        check_lora(SECTION, directory)
    assert str(caught.value) == (
        "train.lora.targets: the experts of this model are one tensor, which adapters do not fit; "
        'give ["k_proj", "o_proj", "q_proj", "v_proj"], or some of these'
    )
    attention_alone = Lora(rank=4, targets=["q_proj", "o_proj"])
    check_lora(attention_alone, directory)
    names = dict(Adapters(fresh(directory), attention_alone, seed=0).merged())
    assert names.keys() == dict(fresh(directory).named_parameters()).keys()
