"""A saved model is a model directory again, and nothing else."""

import torch

from strop.nn.loading import load_model
from strop.nn.saving import read_weights, save_model

MODEL = ["config.json", "generation_config.json", "model.safetensors", "tokenizer_config.json"]


def names(directory):
    return sorted(file.name for file in directory.iterdir())


def test_a_saved_model_loads_with_its_tokenizer(tiny, tiny_dir, tmp_path):
    save_model(tiny, tmp_path)
    assert names(tmp_path) == names(tiny_dir) == MODEL
    again = dict(load_model(tmp_path, torch.float32).named_parameters())
    assert all(torch.equal(again[name], parameter) for name, parameter in tiny.named_parameters())


def test_a_model_trained_from_a_checkpoint_takes_only_the_model_along(tiny, tmp_path):
    source, target = tmp_path / "step-3", tmp_path / "saved"
    source.mkdir()
    target.mkdir()
    save_model(tiny, source)
    for name in (
        "manifest.json",
        "optimizer.safetensors",
        "pytorch_model.bin",
        "model.safetensors.index.json",
    ):
        (source / name).write_text("{}")
    (source / "LICENSE").write_text("free")
    save_model(load_model(source, torch.float32), target)
    assert names(target) == sorted([*MODEL, "LICENSE"])


def test_weights_are_read_back_in_place(tiny, tmp_path):
    save_model(tiny, tmp_path)
    before = {name: parameter.clone() for name, parameter in tiny.named_parameters()}
    where = [parameter.data_ptr() for _, parameter in tiny.named_parameters()]
    with torch.no_grad():
        for _, parameter in tiny.named_parameters():
            parameter.zero_()
    read_weights(tiny, tmp_path)
    assert [parameter.data_ptr() for _, parameter in tiny.named_parameters()] == where
    assert all(torch.equal(before[name], parameter) for name, parameter in tiny.named_parameters())
