"""What a configuration says beside the layers: padding, windows that are off, experts."""

import json
import shutil

import pytest
import torch
from families import make_family

from strop.errors import ConfigError
from strop.nn.attention import Rule, attention
from strop.nn.loading import CausalLM, load_model, outline

IDS = torch.tensor([[5, 6, 7, 6, 9, 10, 11, 12]])


def change_config(directory, **values):
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({**config, **values}))


def hidden(model: CausalLM, ids: torch.Tensor, rules: list[Rule] | None = None) -> torch.Tensor:
    def attend(_layer, q, k, v, rule):
        if rules is not None:
            rules.append(rule)
        return attention(q, k, v, rule, is_causal=True)

    return model.trunk(ids, torch.arange(ids.shape[1])[None], attend)


@pytest.fixture
def directory(tiny_dir, tmp_path):
    """A copy of the tiny model."""
    return shutil.copytree(tiny_dir, tmp_path / "model")


def test_the_padding_token_learns_where_it_is_a_token_like_any_other(directory):
    change_config(directory, pad_token_id=6)
    model = load_model(directory, torch.float32)
    hidden(model, IDS).sum().backward()
    gradient = dict(model.named_parameters())["model.embed_tokens.weight"].grad
    assert gradient[6].any()


@pytest.mark.parametrize("pad", [[0, 1], 9999])
def test_padding_ids_that_no_model_takes_are_refused_in_one_line(directory, pad):
    change_config(directory, pad_token_id=pad)
    with pytest.raises(ConfigError, match=r"cannot be loaded: .*[Pp]ad") as error:
        outline(directory)
    assert "\n" not in str(error.value)


def test_several_end_of_text_ids_are_taken(directory):
    change_config(directory, eos_token_id=[256, 257])
    outline(directory)


def test_a_window_that_is_switched_off_is_no_window(tmp_path):
    directory = make_family("qwen2", tmp_path / "qwen2")
    rules: dict[bool, list[Rule]] = {True: [], False: []}
    for used in rules:
        change_config(directory, use_sliding_window=used, layer_types=None)
        hidden(load_model(directory, torch.float32), IDS, rules[used])
    assert [rule.window for rule in rules[True]] == [None, 6, 6]
    assert [rule.window for rule in rules[False]] == [None] * 3


def test_experts_answer_a_token_alike_in_any_company(tmp_path):
    model = load_model(make_family("qwen3_moe", tmp_path / "moe"), torch.float32)
    with torch.no_grad():
        alone = hidden(model, IDS[:, :1])[0, 0]
        company = torch.randint(0, 264, (5, 8), generator=torch.Generator().manual_seed(0))
        crowd = hidden(model, torch.cat([company, IDS]))[-1, 0]
    torch.testing.assert_close(crowd, alone, rtol=0, atol=1e-5)


def test_a_model_whose_config_asks_for_tuples_is_run_all_the_same(tiny_dir, tmp_path):
    directory = tmp_path / "tuples"
    shutil.copytree(tiny_dir, directory)
    change_config(directory, return_dict=False)
    given = hidden(load_model(directory, torch.float32), IDS)
    assert torch.equal(given, hidden(load_model(tiny_dir, torch.float32), IDS))
