"""What a function leaves on slime's sample is believed only where it can be true."""

import numpy as np
import pytest
from cases import case

from strop.compat.convert import Absorb, scores_of, to_slime
from strop.compat.sample import Sample as SlimeSample
from strop.rewards.choices import gpqa
from strop.sample import Sample, Status, Tokens

PROMPT = [1, 2]


def given(**fields):
    """A right one: two tokens of prompt, a reply of two, a tool's token, a reply of one."""
    right = {
        "tokens": [1, 2, 10, 11, 90, 12],
        "response": "abc",
        "response_length": 4,
        "loss_mask": [1, 1, 0, 1],
        "rollout_log_probs": [-0.1, -0.2, 0.0, -0.3],
        "weight_versions": ["3", "3"],
        "status": Status.COMPLETED,
    }
    return SlimeSample(**{**right, **fields})


def absorbed(sample, *, key=None, version=None, prompt_ids=PROMPT):
    own = Sample(index=0, group_id=0)
    Absorb(key).made(sample, own, prompt_ids=prompt_ids, version=version)
    return own


def finished(**fields):
    own = absorbed(given())
    for name, value in fields.items():
        setattr(own, name, value)
    return own


def shown(own, key=None):
    return to_slime(own, prompt="p", task=None, key=key)


def test_tokens_are_exact_and_only_what_was_drawn_is_sampled():
    own = absorbed(given())
    assert (own.tokens, own.prompt_length) == ([1, 2, 10, 11, 90, 12], 2)
    response = own.response_tokens
    assert response.sampled.tolist() == response.mask.tolist() == [True, True, False, True]
    np.testing.assert_array_equal(response.versions, [3, 3, -1, 3])
    np.testing.assert_array_equal(response.behavior, np.float32([-0.1, -0.2, np.nan, -0.3]))
    assert (own.response, own.status) == ("abc", Status.COMPLETED)


def test_no_mask_is_a_mask_of_ones():
    own = absorbed(given(loss_mask=None, rollout_log_probs=[-0.1, -0.2, -0.3, -0.4]))
    assert own.loss_mask == [1, 1, 1, 1]


def test_a_drawn_token_that_is_masked_stays_drawn():
    own = absorbed(given(loss_mask=[0, 1, 0, 1]))
    assert own.response_tokens.sampled.tolist() == [True, True, False, True]
    assert own.loss_mask == [0, 1, 0, 1]


def test_a_sample_without_trained_tokens_needs_no_log_probs():
    own = absorbed(given(loss_mask=[0] * 4, rollout_log_probs=None))
    assert own.effective_response_length == 0


def test_versions_that_a_function_does_not_tell_are_the_engines():
    assert absorbed(given(weight_versions=[]), version=5).weight_versions == ["5"]


def test_there_and_back_is_the_same():
    own = finished(reward=0.5)
    again = absorbed(shown(own))
    assert (again.tokens, again.loss_mask, again.rollout_log_probs) == (
        own.tokens,
        own.loss_mask,
        own.rollout_log_probs,
    )
    assert again.sequence == own.sequence


def test_a_response_that_a_function_left_without_text_is_empty_text_which_is_worth_0():
    own = absorbed(given(response=None))
    own.label = "B"
    assert (own.response, gpqa(own)) == ("", 0)


WRONG = {
    "no tokens": ({"tokens": [], "response_length": 0}, "sample.tokens is empty; set tokens"),
    "response longer than the tokens": ({"response_length": 6}, "sample.response_length = 6 of 6 tokens"),
    "response below zero": ({"response_length": -1}, "sample.response_length = -1 of 6 tokens"),
    "mask too short": ({"loss_mask": [1, 1, 0]}, "loss_mask has 3 numbers for 4 response tokens"),
    "mask of twos": ({"loss_mask": [1, 2, 0, 1]}, "loss_mask must hold 0 and 1, got 2"),
    "log-probs too short": ({"rollout_log_probs": [-0.1]}, "rollout_log_probs has 1 numbers for 4"),
    "no log-probs": ({"rollout_log_probs": None}, r"is None, but 3 tokens are trained: ask the engine"),
    "log-prob above zero": (
        {"rollout_log_probs": [-0.1, 0.2, 0.0, -0.3]},
        r"rollout_log_probs\[1\] = 0.2 of a trained token; expected a log-prob",
    ),
    "log-prob that is no number": (
        {"rollout_log_probs": [float("nan"), -0.2, 0.0, -0.3]},
        r"rollout_log_probs\[0\] = nan of a trained token",
    ),
    "another prompt": ({"tokens": [1, 3, 10, 11, 90, 12]}, "must begin with the 2 ids of the prompt"),
    "response that reaches into the prompt": (
        {"response_length": 5, "loss_mask": None, "rollout_log_probs": [-0.1] * 5},
        "must begin with the 2 ids of the prompt",
    ),
    "tokens below zero": ({"tokens": [1, 2, -10, 11, 90, 12]}, "ids must be ≥ 0"),
    "several versions": ({"weight_versions": ["3", "4"]}, r"\['3', '4'\]: which token is of which"),
    "no version": ({"weight_versions": []}, "no engine of this run was asked"),
    "spans too short": (
        {"rollout_top_p_token_ids": [5], "rollout_top_p_token_offsets": [0, 1]},
        "rollout_top_p_token_offsets must rise from 0 to 1 in 5 numbers, got 2",
    ),
}


def test_what_cannot_be_true_is_refused():
    for name, (fields, message) in WRONG.items():
        with case(name), pytest.raises(ValueError, match=message):
            absorbed(given(**fields))


def test_without_a_template_the_function_knows_how_its_tokens_begin():
    assert absorbed(given(tokens=[8, 9, 10, 11, 90, 12]), prompt_ids=[]).prompt_length == 2


def test_a_hook_may_change_everything_but_tokens():
    own = finished()
    sample = shown(own)
    sample.loss_mask, sample.metadata["seen"] = [0, 1, 0, 1], True
    sample.response, sample.reward, sample.remove_sample = "other", 0.25, True
    Absorb(None).changed(sample, own)
    assert (own.loss_mask, own.metadata, own.response) == ([0, 1, 0, 1], {"seen": True}, "other")
    assert (own.reward, own.remove_sample) == (0.25, True)
    assert own.weight_versions == ["3"]


def test_what_a_hook_leaves_alone_stays_bit_for_bit():
    own = finished(metadata={"a": [1]})
    before = own.sequence
    Absorb(None).changed(shown(own), own)
    assert own.sequence == before


def test_what_a_hook_may_not_change_is_refused():
    cases = [
        ({"tokens": [1, 2, 10, 11, 90, 13]}, "sample.tokens were changed; only a generate function"),
        ({"response_length": 3}, "sample.tokens were changed"),
        ({"rollout_log_probs": [-0.1, -0.2, 0.0, -0.4]}, "sample.rollout_log_probs were changed"),
        ({"loss_mask": [1, 1, 1, 1]}, "trains a token that the model did not draw"),
        ({"loss_mask": [1]}, "loss_mask has 1 numbers for 4 response tokens"),
    ]
    for change, message in cases:
        with case(change):
            own = finished()
            sample = shown(own)
            for name, value in change.items():
                setattr(sample, name, value)
            with pytest.raises(ValueError, match=message):
                Absorb(None).changed(sample, own)


def test_a_table_of_scores_is_one_number_and_its_parts():
    scores = scores_of({"score": 1.0, "acc": True, "pred": "42"}, "score")
    assert (scores.value, scores.named) == (1.0, {"acc": 1.0})
    assert scores_of(0.5, "score").value == 0.5


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (None, "the reward is a table of 'score', 'acc'; name one with --reward-key"),
        ("scor", "the reward is a table of 'score', 'acc'; --reward-key scor is not among them"),
    ],
)
def test_a_table_without_the_key_says_what_there_is(key, message):
    with pytest.raises(ValueError, match=message):
        scores_of({"score": 1.0, "acc": 1.0}, key)


def test_functions_see_the_table_again():
    own = finished(reward=1.0, scores={"acc": 0.0})
    assert shown(own, key="score").reward == {"score": 1.0, "acc": 0.0}
    assert shown(own).reward == 1.0


def test_a_copy_shares_nothing_with_the_sample():
    own = finished(metadata={"a": [1]})
    sample = shown(own)
    sample.metadata["a"].append(2)
    sample.tokens.append(5)
    assert (own.metadata, len(own.tokens)) == ({"a": [1]}, 6)
    assert isinstance(own.sequence, Tokens)
