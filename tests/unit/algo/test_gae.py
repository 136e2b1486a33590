"""GAE as `algo.advantage`: where the reward is, what KL takes, what tools and truncation change."""

import numpy as np
import pytest

from strop.algo.batch import Batch, make_batch
from strop.algo.policy import PolicyGradient, needs_of
from strop.algo.value import critic_loss, value_metrics
from strop.config.algo import Algo, Critic
from strop.sample import Group, Prompt, Sample, Status, Tokens

REPLY = Tokens.drawn([5], [-1.0], [0])
TOOL = Tokens.context([7])


def batch_of(*parts: Tokens, reward: float = 1.0, status: Status = Status.COMPLETED) -> Batch:
    sequence = sum(parts, Tokens.context([1]))
    sample = Sample(index=0, group_id=0, sequence=sequence, prompt_length=1, reward=reward, status=status)
    group = Group(0, Prompt(id="0", messages=""), [sample])
    return make_batch([group], num_updates=1, max_response_tokens=8, temperature=1.0)


def credited(batch: Batch, values: list[float], **keys) -> Batch:
    batch.scored["values"] = np.array(values, np.float32)
    PolicyGradient(Algo(advantage="gae", **keys), num_updates=1).credit(batch)
    return batch


def test_worked_values():
    batch = credited(batch_of(REPLY, REPLY, REPLY), [0.5, 0.6, 0.7])
    np.testing.assert_allclose(batch.advantage, [0.46575, 0.385, 0.3], atol=1e-6)
    np.testing.assert_allclose(batch.scored["returns"], [0.96575, 0.985, 1.0], atol=1e-6)


def test_a_tools_answer_neither_earns_nor_cuts_credit():
    """miles#1827, #1720: inside the episode, and behind the last trained token."""
    batch = credited(batch_of(REPLY, TOOL, REPLY, REPLY, TOOL), [0.5, np.nan, 0.6, 0.7, np.nan])
    np.testing.assert_allclose(batch.advantage, [0.46575, 0, 0.385, 0.3, 0], atol=1e-6)
    np.testing.assert_allclose(batch.scored["returns"], [0.96575, 0, 0.985, 1.0, 0], atol=1e-6)


def test_discount_and_trace_are_those_of_the_section():
    batch = credited(batch_of(REPLY, REPLY), [0.5, 0.6], gamma=0.9, lambd=0.5)
    last = 1 - 0.6
    np.testing.assert_allclose(batch.advantage, [0.9 * 0.6 - 0.5 + 0.45 * last, last], atol=1e-6)


def test_kl_is_part_of_the_reward_that_the_critic_learns():
    batch = batch_of(REPLY, REPLY)
    batch.scored["old"], batch.scored["ref"] = np.float32([-1.0, -1.0]), np.float32([-1.5, -2.0])
    credited(batch, [0.0, 0.0], kl_coef=0.1, lambd=1.0)
    np.testing.assert_allclose(batch.scored["returns"], [1 - 0.05 - 0.1, 1 - 0.1], atol=1e-6)


def test_returns_are_those_before_whitening():
    plain, white = (
        credited(batch_of(REPLY, REPLY, REPLY), [0.5, 0.6, 0.7], whiten=kind) for kind in ("none", "bessel")
    )
    np.testing.assert_array_equal(plain.scored["returns"], white.scored["returns"])
    assert white.advantage.mean() == pytest.approx(0, abs=1e-6)


def test_what_is_behind_a_cut_counts_if_asked_for():
    for status, bootstrap, behind in (
        (Status.TRUNCATED, True, 0.8),
        (Status.TRUNCATED, False, 0.0),
        (Status.COMPLETED, True, 0.0),
    ):
        batch = batch_of(REPLY, REPLY, status=status)
        batch.scored["next_values"] = np.float32([0.8, 0.8])
        credited(batch, [0.5, 0.6], critic=Critic(bootstrap=bootstrap))
        last = 1 + behind - 0.6
        np.testing.assert_allclose(
            batch.advantage, [0.1 + 0.95 * last, last], atol=1e-6, err_msg=f"{status}, {bootstrap=}"
        )


def test_values_are_needed_by_gae_alone():
    assert needs_of(Algo(), num_updates=1) == set()
    assert needs_of(Algo(advantage="gae"), num_updates=1) == {"values"}
    section = Algo(advantage="gae", kl_coef=0.1, critic=Critic(bootstrap=True))
    assert needs_of(section, num_updates=1) == {"values", "next_values", "old", "ref"}


def test_what_an_untrained_token_holds_does_not_reach_the_loss():
    import torch

    value_N = torch.tensor([1.0, float("nan")], requires_grad=True)
    nan = torch.tensor([0.5, float("nan")])
    loss = critic_loss(value_N, nan, return_N=nan + 0.7, weight_N=torch.tensor([1.0, 0.0]), clip=0.2)
    loss.total.backward()
    assert float(loss.total.detach()) == pytest.approx(0.125)
    assert float(loss.parts["value_clip_frac"]) == 1
    assert value_N.grad.tolist() == [0, 0]


def test_explained_variance_is_of_trained_tokens():
    values, returns = np.array([1.0, 2.0, 3.0, 99.0]), np.array([1.5, 2.0, 2.5, 0.0])
    told = value_metrics(values, returns, np.array([True, True, True, False]))
    assert told["explained_variance"] == pytest.approx(1 - (0.5 / 3) / (0.5 / 3))
    assert (told["value_mean"], told["return_mean"]) == (2.0, 2.0)


def test_where_all_returns_are_equal_there_is_no_variance_to_explain():
    told = value_metrics(np.ones(2), np.full(2, 0.1), np.ones(2, bool))
    assert told.keys() == {"value_mean", "return_mean"}
    assert value_metrics(np.ones(2), np.ones(2), np.zeros(2, bool)) == {}
