"""Our own Llama and its kin give transformers' numbers bit for bit; what is more than one is left to it."""

import json
import shutil

import pytest
import torch
from families import COMMON

from strop.nn.attention import attention
from strop.nn.llama import Llama
from strop.nn.loading import CausalLM, _of_transformers, load_model, outline
from strop.nn.reading import read_llama, shape_of_llama
from strop.nn.saving import save_model
from strop.nn.tiny import make_tiny

KIN = {
    "llama": {"tie_word_embeddings": False},
    "llama with biases": {
        "attention_bias": True,
        "mlp_bias": True,
        "head_dim": 12,
        "tie_word_embeddings": True,
    },
    "mistral": {"sliding_window": None, "tie_word_embeddings": False},
    "qwen2": {"tie_word_embeddings": False},
    "qwen3": {"head_dim": 12, "tie_word_embeddings": True},
}
IDS = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 8, 9], [9, 8, 7, 6, 5, 4, 3, 2, 1]])


@pytest.fixture(scope="module", params=KIN)
def kin(request, tmp_path_factory):
    """A directory as transformers saves it, every weight of it random."""
    from transformers import AutoConfig, AutoModelForCausalLM

    keys = {**COMMON, **KIN[request.param], "num_hidden_layers": 2}
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(request.param.split()[0], **keys))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.uniform_(0.5, 1.5)
    path = tmp_path_factory.mktemp("kin") / "model"
    model.save_pretrained(path)
    return path


def hidden(model):
    def attend(_layer, q, k, v, rule):
        return attention(q, k, v, rule, is_causal=True)

    return model.trunk(IDS, torch.arange(9).expand(2, -1), attend)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_hidden_states_and_gradients_are_transformers_own(kin, dtype):
    ours, theirs = (
        load_model(kin, dtype),
        CausalLM(_of_transformers(kin, dtype=dtype, device=None).eval(), kin),
    )
    assert isinstance(ours.module, Llama)
    assert not isinstance(theirs.module, Llama)
    assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    for model in (ours, theirs):
        model.use_modules()
        (hidden(model).flatten(0, 1) @ model.head_VD.T).float().log_softmax(-1).square().mean().backward()
    assert torch.equal(hidden(ours), hidden(theirs))
    for (name, own), (_, other) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert own.dtype == dtype
        assert torch.equal(own, other), name
        assert torch.equal(own.grad, other.grad), name


def test_the_facts_of_a_model_are_transformers_own(kin):
    ours, theirs = outline(kin), CausalLM(_of_transformers(kin, dtype=torch.float32, device="meta"), kin)
    facts = (
        "num_layers",
        "num_kv_heads",
        "head_dim",
        "max_positions",
        "vocab_size",
        "final_softcap",
        "dtype",
    )
    assert [getattr(ours, fact) for fact in facts] == [getattr(theirs, fact) for fact in facts]
    assert all(parameter.is_meta for _, parameter in ours.named_parameters())
    known = theirs.module.config.to_dict()
    own = {key: value for key, value in ours.module.config.to_dict().items() if key in known}
    assert own == {key: known[key] for key in own}


def test_what_is_saved_transformers_loads(kin, tmp_path):
    ours = load_model(kin, torch.float32)
    with torch.no_grad():
        for _, parameter in ours.named_parameters():
            parameter.mul_(1.5)
    save_model(ours, tmp_path)
    theirs = _of_transformers(tmp_path, dtype=torch.float32, device=None)
    for (name, own), (_, other) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert torch.equal(own, other), name


def test_a_saved_config_tells_the_dtype_of_its_weights(kin, tmp_path):
    source = tmp_path / "half"
    shutil.copytree(kin, source)
    edit(source, dtype=None, torch_dtype="bfloat16")
    saved = tmp_path / "saved"
    saved.mkdir()
    save_model(load_model(source, torch.float32), saved)
    config = json.loads((saved / "config.json").read_text())
    assert (config["dtype"], "torch_dtype" in config) == ("float32", False)


def edit(path, **changes):
    file = path / "config.json"
    config = {**json.loads(file.read_text()), **changes}
    file.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))


@pytest.fixture
def plain(tiny_dir, tmp_path):
    path = tmp_path / "plain"
    shutil.copytree(tiny_dir, path)
    assert shape_of_llama(path) is not None
    return path


OF_MORE = (
    {"model_type": "gemma"},
    {"architectures": ["LlamaForSequenceClassification"]},
    {"a_new_key": 1},
    {"quantization_config": {"bits": 4}},
    {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}},
    {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}},
    {"rope_scaling": {"type": "linear", "factor": 2.0}},
    {"sliding_window": 8},
    {"layer_types": ["full_attention", "sliding_attention"]},
    {"hidden_act": "gelu"},
    {"hidden_size": 64.0},
    {"vocab_size": True},
    {"num_key_value_heads": 3},
    {"pad_token_id": 264},
    {"rms_norm_eps": None},
    {"tie_word_embeddings": None},
)


def test_a_config_that_asks_for_more_is_left_to_transformers(plain):
    whole = (plain / "config.json").read_text()
    for changes in OF_MORE:
        (plain / "config.json").write_text(whole)
        edit(plain, **changes)
        assert shape_of_llama(plain) is None, changes


def test_an_adapter_beside_the_weights_is_left_to_transformers(plain):
    (plain / "adapter_config.json").write_text("{}")
    assert shape_of_llama(plain) is None


@pytest.mark.parametrize(
    "changes",
    [{"num_hidden_layers": 1}, {"num_hidden_layers": 3}, {"tie_word_embeddings": True}, {"vocab_size": 265}],
)
def test_weights_that_are_not_exactly_those_of_the_config_are_left_to_transformers(plain, changes):
    edit(plain, **changes)
    shape = shape_of_llama(plain)
    assert shape is not None
    assert read_llama(plain, shape, dtype=torch.float32) is None


def test_tiny_is_what_transformers_draws_of_the_same_seed(tmp_path):
    from transformers import LlamaConfig, LlamaForCausalLM

    path = make_tiny(tmp_path / "tiny", seed=5)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        theirs = LlamaForCausalLM(LlamaConfig.from_pretrained(path))
    for (name, own), (_, other) in zip(
        load_model(path, torch.float32).named_parameters(), theirs.named_parameters(), strict=True
    ):
        assert torch.equal(own, other), name


def test_weights_do_not_change_when_the_files_that_they_came_from_do(tiny_dir, tmp_path):
    for file in tiny_dir.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    model = load_model(tmp_path, torch.float32)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    for file in tmp_path.glob("*.safetensors"):
        with file.open("r+b") as opened:
            opened.seek(file.stat().st_size // 2)
            opened.write(b"\x01" * (file.stat().st_size // 2))
    assert all(torch.equal(weight, before[name]) for name, weight in model.named_parameters())
