"""A head of one number: how it begins, that it is read back exactly, and what has none."""

import pytest
import torch
from fresh import fresh

from strop.errors import ConfigError, RunError
from strop.nn.saving import save_model
from strop.nn.value_head import FILE, ValueHead, check_head, has_head, open_head, scoring_parameters


def filled(size: int) -> ValueHead:
    head = ValueHead(size)
    with torch.no_grad():
        head.weight_1D.copy_(torch.linspace(-1, 1, size)[None])
        head.bias_1.fill_(0.25)
    return head


def test_it_begins_as_zero_and_is_an_affine_map_of_a_state(tiny):
    hidden_ND = torch.randn(5, tiny.head_VD.shape[1], generator=torch.Generator().manual_seed(0))
    assert not open_head(tiny)(hidden_ND).any()
    expected = [float(row @ torch.linspace(-1, 1, len(row))) + 0.25 for row in hidden_ND]
    torch.testing.assert_close(filled(hidden_ND.shape[1])(hidden_ND), torch.tensor(expected))


def test_a_value_is_float32_of_a_narrower_state():
    value_N = filled(4)(torch.ones(2, 4, dtype=torch.bfloat16))
    assert value_N.dtype is torch.float32


def test_a_directory_with_trunk_and_head_reloads(tiny, tmp_path):
    assert not has_head(tiny.source)
    save_model(tiny, tmp_path)
    head = filled(tiny.head_VD.shape[1])
    head.save(tmp_path)
    assert has_head(tmp_path)
    check_head(tmp_path, key="reward.options.path")
    again = open_head(fresh(tmp_path))
    assert torch.equal(again.weight_1D, head.weight_1D)
    assert torch.equal(again.bias_1, head.bias_1)


def test_a_head_is_not_copied_with_the_tokenizer(tiny, tmp_path):
    """A policy that is trained from a reward model's directory is no reward model."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    save_model(tiny, first)
    filled(tiny.head_VD.shape[1]).save(first)
    save_model(fresh(first), second)
    assert not (second / FILE).exists()


@pytest.mark.parametrize("size", [1, 8])
def test_the_head_of_another_trunk_is_refused_and_not_stretched(tmp_path, size):
    """Of one number it would fit every trunk."""
    filled(size).save(tmp_path)
    with pytest.raises(RunError, match=rf"weight is \[1, {size}\], .* needs \[1, 16\]"):
        ValueHead(16).read(tmp_path)


def test_a_model_without_a_head_is_refused_by_name(tiny_dir):
    with pytest.raises(
        ConfigError, match=r'reward\.options\.path = ".*": a language model without value_head'
    ):
        check_head(tiny_dir, key="reward.options.path")


def test_an_untied_language_head_is_no_part_of_a_value(tiny):
    names = [name for name, _ in scoring_parameters(tiny)]
    everything = [name for name, _ in tiny.named_parameters()]
    assert set(everything) - set(names) == {n for n in everything if n.startswith("lm_head")}
    assert any("embed_tokens" in name for name in names)
