"""slime's `Sample`: round trips and growth, with the values of slime's own contract."""

from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest
from cases import case

from strop.compat.sample import Sample
from strop.sample import Prompt


def grown(**keys):
    sample = Sample(tokens=[0], prompt="p")
    sample.append_response_tokens(tokens=[1], log_probs=[-0.1], **keys)
    return sample


def test_every_field_survives_a_round_trip():
    sample = Sample(
        group_index=1,
        index=2,
        rollout_id=3,
        prompt=[{"role": "user", "content": "?"}],
        tokens=[1, 2, 3],
        response="ab",
        response_length=2,
        label="x",
        reward={"score": 1.0},
        loss_mask=[1, 0],
        weight_versions=["4"],
        rollout_log_probs=[-0.5, 0.0],
        remove_sample=True,
        status=Sample.Status.TRUNCATED,
        metadata={"a": 1},
        session_id="s",
        non_generation_time=0.5,
        multimodal_inputs={"images": ["a.png"]},
        multimodal_train_inputs={"pixels": [0.5]},
        multimodal_train_input_id="i",
        apply_chat_template_kwargs={"thinking": False},
        rollout_top_p_token_ids=[2, 3, 4],
        rollout_top_p_token_offsets=[0, 2, 3],
        rollout_routed_experts=[[[0, 1]], [[1, 0]]],
        teacher_log_probs=[-0.25, -0.5],
        generate_function_path="a:b",
        custom_rm_path="c:d",
        train_metadata={"b": 2},
        task=Prompt(id="p", messages="?"),
    )
    sample.spec_info.spec_verify_ct = 7
    sample.prefix_cache_info.cached_tokens = 50
    blank = Sample()
    assert [f.name for f in fields(Sample) if getattr(sample, f.name) == getattr(blank, f.name)] == []
    again = Sample.from_dict(sample.to_dict())
    assert again == sample
    assert sample.to_dict()["status"] == "truncated"
    assert "task" not in sample.to_dict()


def test_an_unknown_key_stays_as_an_attribute():
    assert Sample.from_dict({"prompt": "p", "mine": 3}).mine == 3


def test_finish_reasons_are_statuses_and_unknown_ones_change_nothing():
    cases = [("stop", "completed"), ("length", "truncated"), ("abort", "aborted"), ("tool", "pending")]
    for reason, status in cases:
        assert grown(meta_info={"finish_reason": {"type": reason}}).status == Sample.Status(status), reason


def test_finish_reasons_can_be_left_alone():
    sample = grown(meta_info={"finish_reason": {"type": "stop"}}, update_terminal_info=False)
    assert sample.status is Sample.Status.PENDING


def test_replies_are_counted_one_after_another():
    sample = grown(meta_info={"weight_version": "1", "prompt_tokens": 100, "cached_tokens": 0})
    sample.append_response_tokens(
        tokens=[2],
        log_probs=[-0.2],
        meta_info={"weight_version": "2", "prompt_tokens": 200, "cached_tokens": 50},
    )
    assert sample.weight_versions == ["1", "2"]
    info = sample.prefix_cache_info
    assert (info.cached_tokens, info.total_prompt_tokens) == (50, 300)


def test_speculation_is_counted_only_when_it_took_place():
    assert grown(meta_info={"completion_tokens": 1}).spec_info == Sample.SpecInfo()
    counters = {
        "spec_accept_token_num": 2,
        "spec_draft_token_num": 4,
        "spec_verify_ct": 3,
        "completion_tokens": 6,
    }
    info = grown(meta_info=counters).spec_info
    assert (info.accept_rate, info.accept_length) == (0.5, 2.0)


def test_tool_tokens_get_mask_zero_log_prob_zero_and_empty_spans():
    sample = Sample(tokens=[0])
    meta = {"top_p_token_ids": [7, 8], "top_p_token_offsets": [0, 2]}
    sample.append_response_tokens(tokens=[1], log_probs=[-0.1], meta_info=meta)
    sample.append_response_tokens(tokens=[200, 201, 202], trainable=False)
    assert sample.tokens == [0, 1, 200, 201, 202]
    assert (sample.loss_mask, sample.rollout_log_probs) == ([1, 0, 0, 0], [-0.1, 0.0, 0.0, 0.0])
    assert sample.rollout_top_p_token_offsets == [0, 2, 2, 2, 2]
    assert sample.effective_response_length == 1


def test_spans_are_merged():
    sample = Sample(tokens=[0])
    for ids, offsets, n in (([5], [0, 1], 1), ([6, 7, 8], [0, 2, 3], 2)):
        meta = {"top_p_token_ids": ids, "top_p_token_offsets": offsets}
        sample.append_response_tokens(tokens=[1] * n, log_probs=[-0.1] * n, meta_info=meta)
    assert sample.rollout_top_p_token_offsets == [0, 1, 3, 4]


def test_routed_experts_must_fit_the_tokens():
    sample = Sample(tokens=[0, 1])
    sample.append_response_tokens(
        tokens=[2], log_probs=[-0.1], meta_info={"routed_experts": np.zeros((2, 2, 2))}
    )
    assert sample.rollout_routed_experts.shape == (2, 2, 2)
    with pytest.raises(ValueError, match=r"routed_experts must be \[3, layers, top_k\]"):
        sample.append_response_tokens(
            tokens=[3], log_probs=[-0.1], meta_info={"routed_experts": np.zeros((2, 2, 2))}
        )
    assert (sample.tokens, sample.response_length) == ([0, 1, 2], 1)


def test_log_probs_that_do_not_fit_change_nothing():
    cases = [
        ({"tokens": [1]}, "1 trainable tokens need log_probs"),
        ({"tokens": [1], "log_probs": [-0.1, -0.2]}, "1 tokens with 2 log_probs"),
        ({"tokens": [1], "log_probs": [-0.1], "trainable": False}, "not trainable take no log_probs"),
        ({"tokens": [1], "log_probs": [0.5]}, "behavior must be a log-prob"),
    ]
    for keys, message in cases:
        with case(keys):
            sample = Sample(tokens=[0])
            with pytest.raises(ValueError, match=message):
                sample.append_response_tokens(**keys)
            assert (sample.tokens, sample.response_length, sample.loss_mask) == ([0], 0, None)


def test_a_mask_grows_with_the_tokens():
    sample = Sample(tokens=[0, 1, 2], response_length=2, loss_mask=[0, 0])
    sample.append_response_tokens(tokens=[3], log_probs=[-0.3])
    assert (sample.loss_mask, sample.rollout_log_probs) == ([0, 0, 1], [0.0, 0.0, -0.3])


def test_earlier_trained_tokens_without_log_probs_are_not_given_some():
    sample = Sample(tokens=[0, 1, 2], response_length=2)
    with pytest.raises(ValueError, match="2 earlier response tokens have no log-probs"):
        sample.append_response_tokens(tokens=[3], log_probs=[-0.3])


def test_a_reward_is_a_number_or_an_entry_of_a_table():
    plain, table = Sample(reward=0.5), Sample(reward={"score": 1.0, "acc": True})
    assert plain.get_reward_value(SimpleNamespace(reward_key=None)) == 0.5
    assert table.get_reward_value(SimpleNamespace(reward_key="score")) == 1.0
    with pytest.raises(ValueError, match=r"reward has no 'scor' \(--reward-key\); it has 'score', 'acc'"):
        table.get_reward_value(SimpleNamespace(reward_key="scor"))
    with pytest.raises(ValueError, match="it has None"):
        Sample().get_reward_value(SimpleNamespace(reward_key="score"))
