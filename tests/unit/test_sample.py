"""Samples and tokens: slime's contract in worked numbers, and checks that leave nothing half done."""

import copy
from dataclasses import fields

import numpy as np
import pytest
from cases import case
from hypothesis import given
from hypothesis import strategies as st

from strop.sample import Group, Prompt, Sample, SpecInfo, Status
from strop.tokens import MalformedTokens, Tokens


def begun(ids=(0,)):
    """A sample with a prompt and no response yet."""
    return Sample(index=5, group_id=2, sequence=Tokens.context(list(ids)), prompt_length=len(ids))


def grown(*calls, ids=(0,)):
    sample = begun(ids)
    for keys in calls:
        sample.append_response_tokens(**keys)
    return sample


def sets(ids, offsets):
    return {"top_p_token_ids": ids, "top_p_token_offsets": offsets}


def state(sample):
    """All that an append could change, as values."""
    return copy.deepcopy({spec.name: getattr(sample, spec.name) for spec in fields(Sample)})


def assert_unchanged(sample, before):
    extras, old = sample.extras, before["extras"]
    assert extras.keys() == old.keys()
    assert all(np.array_equal(extras[name], old[name]) for name in old)
    names = [spec.name for spec in fields(Sample) if spec.name != "extras"]
    assert {name: getattr(sample, name) for name in names} == {name: before[name] for name in names}


ONE = {"tokens": [1], "log_probs": [-0.1], "meta_info": sets([10, 11], [0, 2])}
TOOL = {"tokens": [200, 201, 202], "trainable": False}


def test_tool_tokens_are_masked_and_read_as_zero():
    sample = grown(ONE, TOOL)
    assert sample.tokens == [0, 1, 200, 201, 202]
    assert sample.response_length == 4
    assert sample.loss_mask == [1, 0, 0, 0]
    assert sample.rollout_log_probs == pytest.approx([-0.1, 0, 0, 0])
    assert sample.effective_response_length == 1


def test_tool_tokens_have_empty_top_p_sets():
    sample = grown(ONE, TOOL)
    assert sample.extras["top_p_token_ids"].tolist() == [10, 11]
    assert sample.extras["top_p_token_offsets"].tolist() == [0, 2, 2, 2, 2]


def test_top_p_sets_of_two_replies_are_one_ragged_array():
    sample = grown(
        {"tokens": [1], "log_probs": [-1], "meta_info": sets([7], [0, 1])},
        {"tokens": [2, 3], "log_probs": [-1, -1], "meta_info": sets([7, 8, 9], [0, 2, 3])},
    )
    assert sample.extras["top_p_token_ids"].tolist() == [7, 7, 8, 9]
    assert sample.extras["top_p_token_offsets"].tolist() == [0, 1, 3, 4]


def test_top_p_sets_may_begin_after_tool_tokens():
    sample = grown({"tokens": [9, 9], "trainable": False}, ONE)
    assert sample.extras["top_p_token_offsets"].tolist() == [0, 0, 0, 2]


def test_routed_experts_are_one_row_a_token_but_the_last():
    experts = np.arange(8).reshape(2, 2, 2)
    sample = grown({"tokens": [1, 2], "log_probs": [-1, -1], "meta_info": {"routed_experts": experts}})
    np.testing.assert_array_equal(sample.extras["routed_experts"], experts)


def test_routed_experts_of_a_later_reply_take_the_place_of_the_rows_from_their_start():
    first, second = np.zeros((2, 2, 2)), np.ones((3, 2, 2))
    sample = grown(
        {"tokens": [1, 2], "log_probs": [-1, -1], "meta_info": {"routed_experts": first}},
        {"tokens": [3], "trainable": False},
        {
            "tokens": [4],
            "log_probs": [-1],
            "meta_info": {"routed_experts": second, "routed_experts_start_len": 1},
        },
    )
    assert sample.extras["routed_experts"][:, 0, 0].tolist() == [0, 1, 1, 1]


def test_finish_reason_sets_the_status_and_an_unknown_one_leaves_it():
    cases = [
        ("stop", Status.COMPLETED),
        ("length", Status.TRUNCATED),
        ("abort", Status.ABORTED),
        ("of its own", Status.PENDING),
    ]
    for reason, status in cases:
        with case(reason):
            sample = grown({**ONE, "meta_info": {"finish_reason": {"type": reason}}})
            assert sample.status is status


@pytest.mark.parametrize("meta_info", [{"finish_reason": None}, {}, None])
def test_a_reply_without_a_finish_reason_leaves_the_status(meta_info):
    assert grown({"tokens": [1], "log_probs": [-1], "meta_info": meta_info}).status is Status.PENDING


def test_terminal_information_can_be_left_alone():
    keys = {"meta_info": {"finish_reason": {"type": "stop"}}, "update_terminal_info": False}
    assert grown({"tokens": [1], "log_probs": [-1], **keys}).status is Status.PENDING


def test_speculation_is_counted_only_when_the_engine_speculates():
    spec = {
        "spec_accept_token_num": 6,
        "spec_draft_token_num": 8,
        "spec_verify_ct": 4,
        "completion_tokens": 10,
    }
    plain = {"tokens": [1], "log_probs": [-1], "meta_info": {"completion_tokens": 10}}
    sample = grown(plain)
    assert sample.spec_info == SpecInfo()
    assert (sample.spec_info.accept_rate, sample.spec_info.accept_length) == (0, 0)
    sample = grown(plain, *[{"tokens": [1], "log_probs": [-1], "meta_info": spec}] * 2)
    assert sample.spec_info == SpecInfo(12, 16, 8, 20)
    assert (sample.spec_info.accept_rate, sample.spec_info.accept_length) == (0.75, 2.5)


def reply(version, n=1):
    return {"tokens": [1] * n, "log_probs": [-1] * n, "meta_info": {"weight_version": version}}


def test_weight_versions_are_those_of_sampled_tokens_in_order():
    cases = [
        ([], []),
        ([TOOL], []),
        ([reply(1), reply(2)], ["1", "2"]),
        ([reply("1"), TOOL, reply("1", 2)], ["1"]),
        ([reply(1), reply(2), reply(1)], ["1", "2", "1"]),
    ]
    for calls, versions in cases:
        assert grown(*calls).weight_versions == versions, calls


def test_text_of_all_appends_is_the_response():
    assert grown({**ONE, "text": "a"}, {**TOOL, "text": " b"}, {**ONE, "text": "c"}).response == "a bc"


def test_slimes_names_read_the_same():
    sample = grown(ONE, TOOL, ids=(8, 9))
    assert (sample.group_index, sample.rollout_id, sample.response_length) == (2, 5, 4)
    sample.timing = {"generate_s": 5.0, "environment_s": 1.0, "reward_s": 0.5}
    assert sample.non_generation_time == 1.5
    assert Sample(index=3, group_id=0, trajectory_id=1).rollout_id == 1


def test_slimes_positional_arguments_are_accepted():
    sample = begun()
    sample.append_response_tokens(object(), tokens=[1], log_probs=[-1.0])
    assert sample.tokens == [0, 1]


def test_an_append_of_nothing_changes_nothing_but_the_status():
    sample = grown(ONE, {"tokens": [], "log_probs": [], "meta_info": {"finish_reason": {"type": "length"}}})
    assert (sample.response_length, sample.status) == (1, Status.TRUNCATED)


REFUSED = {
    "trainable without log-probs": ({"tokens": [1, 2]}, "2 trainable tokens need log_probs"),
    "not trainable with log-probs": (
        {"tokens": [1], "log_probs": [-1.0], "trainable": False},
        "tokens that are not trainable take no log_probs",
    ),
    "too few log-probs": ({"tokens": [1, 2], "log_probs": [-1.0]}, "2 tokens with 1 log_probs"),
    "log-prob above 0": ({"tokens": [1], "log_probs": [0.5]}, "behavior must be a log-prob"),
    "log-prob that is no number": (
        {"tokens": [1], "log_probs": [float("nan")]},
        "behavior must be a log-prob",
    ),
    "negative id": ({"tokens": [-1], "log_probs": [-1.0]}, "ids must be ≥ 0"),
    "version that is no number": ({**ONE, "meta_info": {"weight_version": "default"}}, "weight_version"),
    "negative version": ({**ONE, "meta_info": {"weight_version": -1}}, "versions must be ≥ 0"),
    "top-p ids without offsets": (
        {**ONE, "meta_info": {"top_p_token_ids": [1]}},
        "top-p sets come as top_p_token_ids and top_p_token_offsets",
    ),
    "top-p offsets without ids": (
        {**ONE, "meta_info": {"top_p_token_offsets": [0, 1]}},
        "top-p sets come as top_p_token_ids and top_p_token_offsets",
    ),
    "top-p offsets of another length": ({**ONE, "meta_info": sets([1], [0, 1, 1])}, "in 2 numbers"),
    "top-p offsets that end elsewhere": ({**ONE, "meta_info": sets([1], [0, 2])}, "rise from 0 to 1"),
    "top-p offsets that fall": (
        {"tokens": [1, 2], "log_probs": [-1, -1], "meta_info": sets([1], [0, 2, 1])},
        r"rise from 0 to 1 in 3 numbers, got \[0, 2, 1\]",
    ),
    "top-p offsets that begin elsewhere": ({**ONE, "meta_info": sets([1], [1, 1])}, "rise from 0"),
    "no top-p offsets at all": ({**ONE, "meta_info": sets([], [])}, "in 2 numbers"),
    "trainable without top-p sets after some": (
        {"tokens": [1], "log_probs": [-1]},
        "earlier tokens have top-p sets",
    ),
    "routed experts of another count": (
        {**ONE, "meta_info": {**sets([1], [0, 1]), "routed_experts": np.zeros((2, 2, 2))}},
        r"routed_experts must be \[5, layers, top_k\] from position 0, got \[2, 2, 2\]",
    ),
    "routed experts that are flat": (
        {**ONE, "meta_info": {**sets([1], [0, 1]), "routed_experts": np.zeros(5)}},
        r"got \[5\]",
    ),
    "routed experts that begin in the air": (
        {
            **ONE,
            "meta_info": {
                **sets([1], [0, 1]),
                "routed_experts": np.zeros((3, 2, 2)),
                "routed_experts_start_len": 2,
            },
        },
        "routed_experts start at 2, but none came before",
    ),
    "half of the counters": (
        {**ONE, "meta_info": {**sets([1], [0, 1]), "spec_verify_ct": 1}},
        "spec_accept_token_num",
    ),
    "finish reason without a type": (
        {**ONE, "meta_info": {**sets([1], [0, 1]), "finish_reason": {}}},
        "finish",
    ),
    "finish reason that is text": (
        {**ONE, "meta_info": {**sets([1], [0, 1]), "finish_reason": "stop"}},
        "finish_reason",
    ),
}


def test_what_does_not_fit_is_refused_and_the_sample_is_unchanged():
    for what, (keys, message) in REFUSED.items():
        with case(what):
            sample = grown(ONE, TOOL)
            before = state(sample)
            with pytest.raises(ValueError, match=message):
                sample.append_response_tokens(**{"text": "x", **keys})
            assert_unchanged(sample, before)


GOOD = {
    "ids": [1, 2, 3],
    "sampled": [False, True, True],
    "mask": [False, True, False],
    "behavior": [np.nan, -0.5, 0.0],
    "versions": [-1, 0, 4],
}


def test_tokens_that_cannot_be_true_are_refused_with_the_place():
    cases = [
        ({"ids": [1, 2]}, "Tokens need five arrays of one length"),
        ({"ids": 1, "mask": True}, "Tokens need five arrays of one length"),
        ({"versions": [[-1, 0, 4]]}, "Tokens need five arrays of one length"),
        ({"ids": [1, -2, 3]}, "ids must be ≥ 0; it does not at position 1"),
        ({"mask": [True, True, False]}, "mask may only hold where sampled does; it does not at position 0"),
        ({"behavior": [np.nan, -0.5, 0.1]}, r"behavior must be a log-prob .* at position 2"),
        ({"behavior": [np.nan, np.nan, 0.0]}, r"behavior must be a log-prob .* at position 1"),
        ({"behavior": [np.nan, -np.inf, 0.0]}, r"behavior must be a log-prob .* at position 1"),
        (
            {"behavior": [-1.0, -0.5, 0.0]},
            "behavior must be NaN where not sampled; it does not at position 0",
        ),
        ({"versions": [0, 0, 4]}, r"versions must be ≥ 0 where sampled .* at position 0"),
        ({"versions": [-1, 0, -1]}, r"versions must be ≥ 0 where sampled .* at position 2"),
    ]
    assert len(Tokens(**GOOD)) == 3
    for wrong, message in cases:
        with case(wrong), pytest.raises(MalformedTokens, match=message):
            Tokens(**{**GOOD, **wrong})


def test_tokens_have_fixed_types_and_cannot_be_written():
    tokens = Tokens(**GOOD)
    kinds = [getattr(tokens, spec.name).dtype for spec in fields(Tokens)]
    assert kinds == [np.int32, np.bool_, np.bool_, np.float32, np.int32]
    with pytest.raises(ValueError, match="read-only"):
        tokens.ids[0] = 9


def test_tokens_do_not_share_memory_with_what_they_were_made_of():
    ids = np.array([1, 2], np.int32)
    tokens = Tokens.context(ids)
    ids[0] = 9
    assert tokens.ids.tolist() == [1, 2]


def test_untrained_tokens_keep_everything_but_the_mask():
    tokens = Tokens(**GOOD)
    assert not tokens.untrained().mask.any()
    assert tokens.untrained().sampled.tolist() == GOOD["sampled"]
    assert tokens.untrained() != tokens


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=6))
def test_concatenation_keeps_order_and_is_equal_to_itself(parts):
    pieces = [
        Tokens.drawn([i] * n, [-1.0] * n, [i] * n) if drawn else Tokens.context([i] * n)
        for i, (drawn, n) in enumerate(parts)
    ]
    whole = sum(pieces, Tokens.context([]))
    assert whole.ids.tolist() == [i for i, (_, n) in enumerate(parts) for _ in range(n)]
    assert whole == sum(pieces[1:], pieces[0] if pieces else Tokens.context([]))
    assert (whole != whole.untrained()) == bool(whole.mask.any())


def test_failing_keeps_what_was_sampled_and_takes_the_reward_back():
    sample = grown(ONE)
    sample.reward, sample.scores = 1.0, {"style": 0.5}
    sample.fail(RuntimeError("environment x: gone"))
    assert (sample.status, sample.error) == (Status.FAILED, "environment x: gone")
    assert (sample.reward, sample.scores, sample.tokens) == (None, {}, [0, 1])


def test_rewards_of_a_group_are_those_that_were_given():
    samples = [Sample(index=i, group_id=0, reward=reward) for i, reward in enumerate([1.0, None, 0.0])]
    assert Group(id=0, prompt=Prompt(id="p", messages=""), samples=samples).rewards == [1.0, 0.0]
