"""How many tokens a response may have: the run's budget, the prompt's own, and what the context leaves."""

import itertools
from dataclasses import replace

import pytest
from scripted import PROMPT, Noise, Scripted, finished, finished_group, player_of

from strop.config.tree import EvalSet, Rollout
from strop.envs.base import Observation
from strop.envs.calculator import Calculator
from strop.render.bytes import END_OF_TURN, ByteRenderer
from strop.rollout.group import Player
from strop.rollout.sampling import eval_sampling, lowered, run_sampling
from strop.sample import Prompt, Sampling, Status

CALL, ANSWER = "<calc>6*7</calc>", "42"
LENGTH = len(ByteRenderer().prompt(PROMPT))


def within(player: Player, max_context_tokens: int) -> Player:
    return replace(player, parts=replace(player.parts, max_context_tokens=max_context_tokens))


def with_budget(n: int) -> Prompt:
    return replace(PROMPT, metadata={"max_response_tokens": n})


class Greets(Calculator):
    """Its opening makes the prompt longer."""

    async def start(self, prompt):
        return Observation(({"role": "system", "content": "Use <calc>."},))


async def test_a_prompt_may_have_a_smaller_budget_of_its_own():
    sample = await finished(player_of(Scripted("forty-two")), prompt=with_budget(5))
    assert (sample.response, sample.status) == ("forty", Status.TRUNCATED)
    assert sample.sampling == Sampling(max_tokens=5)


async def test_a_prompt_cannot_raise_the_budget_of_the_run():
    engine = Scripted("forty-two")
    await finished(player_of(engine), prompt=with_budget(500), max_tokens=6)
    assert engine.requests[0].sampling.max_tokens == 6


async def test_context_leaves_less_to_a_longer_prompt():
    engine = Scripted("forty-two", "forty-two")
    longer = replace(PROMPT, messages=PROMPT.messages + "??")
    for prompt in (PROMPT, longer):
        await finished(within(player_of(engine), LENGTH + 7), prompt=prompt)
    assert [r.sampling.max_tokens for r in engine.requests] == [7, 5]


async def test_all_turns_together_stay_within_the_budget():
    """slime#1861: a budget for each turn may exceed the context; slime#2261: so may one given anew."""
    for by, budget in itertools.product(("prompt", "context"), (3, 17, 18, 25, 29, 60)):
        player, prompt = player_of(Scripted(CALL, ANSWER), make_env=Calculator), PROMPT
        if by == "prompt":
            prompt = with_budget(budget)
        else:
            player = within(player, LENGTH + budget)
        sample = await finished(player, prompt=prompt)
        assert sample.response_length <= budget, (by, budget)
        assert len(sample.tokens) == LENGTH + sample.response_length, (by, budget)
        assert sample.error is None, (by, budget)


async def test_opening_of_the_environment_takes_its_room_from_the_response():
    player = within(player_of(Scripted("forty-two"), make_env=Greets), LENGTH + 20)
    sample = await finished(player)
    assert len(sample.tokens) <= LENGTH + 20
    assert sample.sampling.max_tokens == LENGTH + 20 - sample.prompt_length


@pytest.mark.parametrize("make_env", [Calculator, Greets])
async def test_prompt_that_leaves_no_token_ends_truncated_and_spares_the_run(make_env):
    """verifiers#1625: an overlong prompt crashed the rollout."""
    engine = Scripted()
    sample = await finished(within(player_of(engine, make_env=make_env), LENGTH))
    assert (sample.status, sample.response_length, sample.error) == (Status.TRUNCATED, 0, None)
    assert engine.requests == []


async def test_a_long_prompt_does_not_make_a_short_answer_overlong():
    """SkyRL#755: measured from the context, not from the response."""
    prompt = replace(PROMPT, messages="so " * 200)
    sample = await finished(player_of(Scripted("42")), prompt=prompt, max_tokens=4)
    assert (sample.status, sample.response_length) == (Status.COMPLETED, 3)


async def test_end_of_turn_of_a_finished_reply_is_trained_in_every_turn():
    sample = await finished(player_of(Scripted(CALL, ANSWER), make_env=Calculator))
    ends = sample.sequence.ids == END_OF_TURN
    assert sample.sequence.mask[-1]
    assert (ends & sample.sequence.mask).sum() == 2


async def test_first_response_token_is_trained():
    sample = await finished(player_of(Scripted("42")))
    assert sample.loss_mask == [1, 1, 1]


async def test_samples_of_one_prompt_differ():
    """verl#5179: one seed for all samples of a request."""
    samples = await finished_group(player_of(Noise()), size=6)
    assert len({sample.response for sample in samples}) == 6
    assert len({sample.index for sample in samples}) == 6


def test_run_and_held_out_sets_say_what_is_drawn():
    section = Rollout(top_p=0.9, top_k=20, min_p=0.1, stop=["\n"], stop_token_ids=[7], ignore_eos=True)
    run = run_sampling(section)
    assert run == Sampling(256, 1.0, (7,), top_p=0.9, top_k=20, min_p=0.1, stop=("\n",), ignore_eos=True)
    same = eval_sampling(EvalSet(name="a", source="f.py:f", n=1), section)
    assert same == replace(run, temperature=0.0)
    assert same.keeps_all
    own = EvalSet(name="a", source="f.py:f", n=1, temperature=0.7, top_p=1.0, top_k=-1, min_p=0.0, stop=[])
    assert eval_sampling(own, section) == Sampling(256, 0.7, (7,), ignore_eos=True)


def test_the_smallest_of_three_budgets_counts():
    def of(budget, context, run=60):
        prompt = with_budget(budget)
        return lowered(Sampling(run), prompt, prompt_tokens=10, max_context_tokens=context).max_tokens

    assert [of(50, 100), of(50, 40), of(99, None), of(50, 100, run=20)] == [50, 30, 60, 20]
