"""Episodes token by token: one turn, two turns, budgets, and everything that an environment can do wrong."""

import asyncio

import numpy as np
import pytest
from cases import case
from scripted import LOGP, PROMPT, VERSION, Scripted, finished, finished_group, player_of

from strop.envs.base import Observation, Step
from strop.envs.calculator import Calculator
from strop.render.bytes import END_OF_TURN, ByteRenderer
from strop.sample import Prompt, Sample, Status

CALL, TOOL, ANSWER = "<calc>6*7</calc>", "= 42", "42"
CONVERSATION = (
    {"role": "user", "content": PROMPT.messages},
    {"role": "assistant", "content": CALL},
    {"role": "tool", "content": TOOL},
    {"role": "assistant", "content": ANSWER},
)
NUM_CALL, NUM_TOOL, NUM_ANSWER = len(CALL) + 1, len(TOOL) + 3, len(ANSWER) + 1
"""A reply ends with its stop id; what follows is the tool's role, text and end, and the model's role."""


def rendered(*messages) -> list[int]:
    """Ids of a conversation, without the opening of a next reply."""
    return ByteRenderer().prompt(Prompt(id="p", messages=messages))[:-1]


class Spy:
    """An environment that answers `tool` until its last reply, and remembers what was done to it."""

    made: "list[Spy]"

    def __init__(self, *, turns=1, reward=1.0):
        self.turns, self.reward = turns, reward
        self.replies, self.num_closed = [], 0
        self.made.append(self)

    async def start(self, prompt):
        return Observation()

    async def step(self, reply):
        self.replies.append(reply)
        if len(self.replies) == self.turns:
            return Step(Observation(), done=True, reward=self.reward)
        return Step(Observation(({"role": "tool", "content": "and?"},)), done=False)

    async def close(self):
        self.num_closed += 1


@pytest.fixture(autouse=True)
def spies(monkeypatch):
    """Every environment that the test made."""
    monkeypatch.setattr(Spy, "made", [], raising=False)
    return Spy.made


async def two_turns(*, max_tokens: int = 60) -> tuple[Sample, Scripted]:
    engine = Scripted(CALL, ANSWER)
    return await finished(player_of(engine, make_env=Calculator), max_tokens=max_tokens), engine


async def test_single_turn_is_prompt_and_reply_by_exact_ids():
    sample = await finished(player_of(Scripted("42")))
    assert sample.tokens == rendered(CONVERSATION[0], {"role": "assistant", "content": "42"})
    assert (sample.prompt_length, sample.response_length) == (len(sample.tokens) - 3, 3)
    assert (sample.status, sample.response, sample.reward) == (Status.COMPLETED, "42", 1.0)


async def test_two_turns_are_the_ids_of_the_rendered_conversation():
    sample, engine = await two_turns()
    assert sample.tokens == rendered(*CONVERSATION)
    assert sample.tokens[: len(engine.requests[1].ids)] == engine.requests[1].ids.tolist()
    assert sample.status is Status.COMPLETED


async def test_tool_tokens_are_neither_sampled_nor_trained():
    sample, _ = await two_turns()
    of_policy = np.repeat([True, False, True], [NUM_CALL, NUM_TOOL, NUM_ANSWER])
    response = sample.response_tokens
    np.testing.assert_array_equal(response.sampled, of_policy)
    np.testing.assert_array_equal(response.mask, of_policy)
    np.testing.assert_array_equal(response.versions, np.where(of_policy, VERSION, -1))
    np.testing.assert_array_equal(response.behavior, np.where(of_policy, np.float32(LOGP), np.nan))


async def test_response_is_text_of_all_turns():
    sample, _ = await two_turns()
    assert sample.response == CALL + TOOL + ANSWER


async def test_every_turn_has_the_seed_of_the_sample_and_an_id_of_its_own():
    _, engine = await two_turns()
    assert engine.requests[0].seed == engine.requests[1].seed
    assert engine.requests[0].id != engine.requests[1].id


async def test_a_later_turn_gets_what_is_left_of_the_budget():
    _, engine = await two_turns(max_tokens=60)
    assert [r.sampling.max_tokens for r in engine.requests] == [60, 60 - NUM_CALL - NUM_TOOL]


async def test_response_with_tool_tokens_never_exceeds_the_budget():
    for max_tokens in range(1, NUM_CALL + NUM_TOOL + NUM_ANSWER + 2):
        with case(max_tokens):
            sample, _ = await two_turns(max_tokens=max_tokens)
            whole = rendered(*CONVERSATION)
            assert sample.response_length <= max_tokens
            assert sample.tokens == whole[: len(sample.tokens)]
            is_whole = sample.tokens == whole
            assert sample.status is (Status.COMPLETED if is_whole else Status.TRUNCATED)
            assert is_whole == (max_tokens >= NUM_CALL + NUM_TOOL + NUM_ANSWER)


async def test_no_token_left_after_the_tool_reply_is_truncated_without_it():
    sample, engine = await two_turns(max_tokens=NUM_CALL + NUM_TOOL)
    assert sample.status is Status.TRUNCATED
    assert sample.response_length == NUM_CALL
    assert len(engine.requests) == 1
    assert sample.reward == 0


async def test_one_token_left_after_the_tool_reply_is_used():
    sample, _ = await two_turns(max_tokens=NUM_CALL + NUM_TOOL + 1)
    assert sample.response_length == NUM_CALL + NUM_TOOL + 1
    assert sample.response_tokens.sampled[-1]
    assert sample.status is Status.TRUNCATED


async def test_truncated_reply_reaches_the_environment_and_its_reward_counts(spies):
    sample = await finished(player_of(Scripted("forty-two"), make_env=lambda: Spy(reward=0.75)), max_tokens=5)
    assert [(r.text, r.is_truncated) for r in spies[0].replies] == [("forty", True)]
    assert (sample.status, sample.reward) == (Status.TRUNCATED, 0.75)


async def test_truncated_reply_is_the_last_whatever_the_environment_says(spies):
    engine = Scripted("forty-two", "more")
    sample = await finished(player_of(engine, make_env=lambda: Spy(turns=5)), max_tokens=5)
    assert (len(engine.requests), sample.status, sample.error) == (1, Status.TRUNCATED, None)
    assert spies[0].num_closed == 1


async def test_out_of_turns_is_truncated(spies):
    engine = Scripted("a", "b", "c")
    sample = await finished(player_of(engine, make_env=lambda: Spy(turns=9), max_turns=3))
    assert (len(engine.requests), sample.status) == (3, Status.TRUNCATED)
    assert spies[0].num_closed == 1


async def test_reward_of_the_environment_stands_in_for_the_reward_function(spies):
    def never(_):
        raise AssertionError("not asked")

    sample = await finished(player_of(Scripted("a", "b"), make_env=lambda: Spy(turns=2), reward=never))
    assert (sample.reward, sample.error) == (1.0, None)


async def test_opening_messages_follow_the_prompt_and_are_not_trained():
    class Greets(Calculator):
        async def start(self, prompt):
            return Observation(({"role": "system", "content": "Use <calc>."},))

    engine = Scripted(CALL, ANSWER)
    sample = await finished(player_of(engine, make_env=Greets))
    opening = (CONVERSATION[0], {"role": "system", "content": "Use <calc>."})
    assert sample.tokens == rendered(*opening, *CONVERSATION[1:])
    assert sample.prompt_length == len(rendered(*opening)) + 1
    assert not sample.sequence.sampled[: sample.prompt_length].any()


async def test_aborted_reply_keeps_its_tokens_and_ends_the_episode(spies):
    sample = await finished(player_of(Scripted("42", finish="abort"), make_env=Spy))
    assert sample.status is Status.ABORTED
    assert (sample.response, spies[0].replies, spies[0].num_closed) == ("42", [], 1)


async def test_every_sample_has_an_environment_of_its_own(spies):
    await finished_group(player_of(Scripted(*"abcd"), make_env=Spy), size=4)
    assert [len(spy.replies) for spy in spies] == [1, 1, 1, 1]
    assert [spy.num_closed for spy in spies] == [1, 1, 1, 1]


async def test_time_in_the_engine_and_outside_is_told_apart():
    class Slow(Spy):
        async def step(self, reply):
            await asyncio.sleep(0.02)
            return await super().step(reply)

    sample = await finished(player_of(Scripted("a"), make_env=Slow))
    assert set(sample.timing) == {"generate_s", "environment_s", "reward_s"}
    assert sample.non_generation_time >= 0.02 > sample.timing["generate_s"]


def raising(where: str, error: BaseException):
    async def fails(self, *_):
        raise error

    return type("Raising", (Spy,), {where: fails})


def returning(where: str, answer):
    """`answer`: makes the answer, as the environment does, inside its call."""

    async def answers(self, *_):
        return answer()

    return type("Returning", (Spy,), {where: answers})


def not_async(where: str):
    def fails(self, *_):
        raise RuntimeError("boom")

    return type("NotAsync", (Spy,), {where: fails})


def hanging(where: str):
    async def hangs(self, *_):
        await asyncio.sleep(60)

    return type("Hanging", (Spy,), {where: hangs})


class Stillborn:
    def __init__(self):
        raise RuntimeError("no such database\nsecond line")


def again(messages, *, reward=None):
    return Step(Observation(messages), done=False, reward=reward)


def done(reward):
    return Step(Observation(), done=True, reward=reward)


FAULTS = {
    "constructor raises": (Stillborn, "environment mine: RuntimeError: no such database"),
    "start raises": (raising("start", KeyError("row")), "environment mine: KeyError: 'row'"),
    "step raises": (raising("step", ValueError("boom\nmore")), "environment mine: ValueError: boom"),
    "step raises before it awaits": (not_async("step"), "environment mine: RuntimeError: boom"),
    "start raises before it awaits": (not_async("start"), "environment mine: RuntimeError: boom"),
    "close raises": (raising("close", OSError("gone")), "environment mine: close: OSError: gone"),
    "close raises before it awaits": (not_async("close"), "environment mine: close: RuntimeError: boom"),
    "start returns None": (returning("start", lambda: None), "TypeError: expected Observation, got None"),
    "step returns None": (returning("step", lambda: None), "TypeError: expected Step, got None"),
    "step returns a bare number": (returning("step", lambda: 1.0), "TypeError: expected Step, got 1.0"),
    "start hangs": (hanging("start"), "environment mine: no answer after 0.02 s"),
    "step hangs": (hanging("step"), "environment mine: no answer after 0.02 s"),
    "close hangs": (hanging("close"), "environment mine: close: no answer after 0.02 s"),
    "reward is text": (returning("step", lambda: done("1.0")), "str '1.0'; expected a finite number"),
    "reward is not a number": (
        returning("step", lambda: done(float("nan"))),
        "nan; expected a finite number",
    ),
    "a reward that is no number, before the end": (
        returning("step", lambda: again((), reward="good")),
        "the reward given: returned str 'good'; expected a finite number",
    ),
    "role without a token": (
        returning("step", lambda: again(({"role": "critic", "content": "no"},))),
        "the byte-level renderer knows the roles user, assistant, tool, system; got 'critic'",
    ),
    "opening with a role without a token": (
        returning("start", lambda: Observation(({"role": "critic", "content": "no"},))),
        "got 'critic'",
    ),
    "no messages at all": (returning("step", lambda: again(None)), "messages"),
    "opening without messages": (returning("start", lambda: Observation(None)), "messages"),
    "message that is text": (returning("step", lambda: again(("no",))), "message"),
    "message without a role": (returning("step", lambda: again(({"content": "no"},))), "message"),
    "message without content": (returning("start", lambda: Observation(({"role": "tool"},))), "message"),
    "no observation": (returning("step", lambda: Step(None, done=False)), "bservation"),
    "cancels itself": (raising("step", asyncio.CancelledError()), "cancelled"),
    "close cancels itself": (raising("close", asyncio.CancelledError()), "cancelled"),
}


async def test_fault_of_an_environment_ends_on_its_sample(spies):
    for fault, (make_env, error) in FAULTS.items():
        spies.clear()
        with case(fault):
            player = player_of(Scripted("a", "b"), make_env=make_env, timeout_s=0.02, max_turns=2)
            sample = await finished(player)
            assert (sample.status, sample.reward) == (Status.FAILED, None)
            assert error in sample.error
            assert "\n" not in sample.error
            assert "close" in fault or all(spy.num_closed == 1 for spy in spies)


async def test_fault_keeps_the_tokens_so_far_and_their_text():
    class Breaks(Spy):
        async def step(self, reply):
            raise RuntimeError("boom")

    sample = await finished(player_of(Scripted("41"), make_env=Breaks))
    assert sample.response == "41"
    assert sample.response_tokens.ids.tolist() == [*b"41", END_OF_TURN]


async def test_first_fault_is_the_one_that_is_told():
    make_env = raising("step", ValueError("the cause"))

    async def close(self):
        raise OSError("and then this")

    make_env.close = close
    sample = await finished(player_of(Scripted("a"), make_env=make_env))
    assert sample.error == "environment mine: ValueError: the cause"


async def test_fault_of_one_sample_spares_its_siblings(spies):
    class FailsOnB(Spy):
        async def step(self, reply):
            if reply.text == "b":
                raise RuntimeError("boom")
            return await super().step(reply)

    samples = await finished_group(player_of(Scripted(*"abcd"), make_env=FailsOnB), size=4)
    assert [s.status for s in samples].count(Status.FAILED) == 1
    assert [s.reward for s in samples if s.status is not Status.FAILED] == [1.0, 1.0, 1.0]


async def test_cancelled_episode_closes_its_environment(spies):
    player = player_of(Scripted("a"), make_env=hanging("step"))
    task = asyncio.ensure_future(finished(player))
    while not (spies and len(player.parts.engine.requests)):  # noqa: ASYNC110 - until it hangs
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert spies[0].num_closed == 1
