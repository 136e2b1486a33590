"""`rollout.generate`: a function in the place of the episode. What it may do; its faults."""

import asyncio

import numpy as np
import pytest
from cases import case
from scripted import PROMPT, Noise, Scripted, finished, finished_group, player_of

from strop.envs.single_turn import SingleTurn
from strop.errors import DataError
from strop.sample import Sample, Scores, Status, Tokens


def fill(ctx, completion):
    """Put one completion down as the sample's response."""
    ids = ctx.renderer.prompt(PROMPT)
    drawn = Tokens.drawn(completion.ids, completion.logp, completion.versions)
    ctx.sample.sequence, ctx.sample.prompt_length = Tokens.context(ids) + drawn, len(ids)
    ctx.sample.response = ctx.renderer.decode(completion.ids.tolist())
    ctx.sample.status = Status.COMPLETED


async def one_call(prompt, ctx):
    fill(ctx, await ctx.complete(ctx.renderer.prompt(prompt)))
    return [ctx.sample]


def after(change):
    """`one_call`, with a change of the sample behind it."""

    async def generate(prompt, ctx):
        made = await one_call(prompt, ctx)
        change(ctx.sample)
        return made

    return generate


async def replies_of(*calls):
    """The texts of these completions of one sample."""
    texts = []

    async def generate(prompt, ctx):
        for keys in calls:
            completion = await ctx.complete(ctx.renderer.prompt(prompt), **keys)
            texts.append(ctx.renderer.decode(completion.ids.tolist()))
            fill(ctx, completion)
        return [ctx.sample]

    await finished(player_of(Noise(), generate=generate))
    return texts


async def test_sample_that_it_filled_is_rewarded_by_the_reward_function():
    sample = await finished(player_of(Scripted("42"), generate=one_call))
    assert (sample.status, sample.response, sample.reward) == (Status.COMPLETED, "42", 1.0)
    assert sample.error is None


async def test_environment_is_not_made():
    def make_env():
        raise AssertionError("not asked")

    sample = await finished(player_of(Scripted("42"), generate=one_call, make_env=make_env))
    assert sample.status is Status.COMPLETED


async def test_context_tells_the_sampling_and_the_sample():
    async def generate(prompt, ctx):
        assert (ctx.sampling.max_tokens, ctx.sample.label, prompt) == (60, 42, PROMPT)
        return await one_call(prompt, ctx)

    assert (await finished(player_of(Scripted("42"), generate=generate))).error is None


async def test_calls_of_a_sample_have_noise_of_their_own():
    first, second, third = await replies_of({}, {"call": 1}, {"call": 2})
    assert len({first, second, third}) == 3


async def test_the_same_call_has_the_same_noise():
    assert len(set(await replies_of({"call": 1}, {"call": 1}))) == 1
    assert await replies_of({}, {"call": 1}) == await replies_of({}, {"call": 1})


async def test_samples_of_a_group_and_steps_have_noise_of_their_own():
    player = player_of(Noise(), generate=one_call)
    samples = await finished_group(player, size=3)
    later = await finished_group(player, size=3, step=1)
    assert len({s.response for s in [*samples, *later]}) == 6


async def test_a_call_gets_the_whole_budget_unless_it_asks_for_less():
    engine = Scripted("42", "42")

    async def generate(prompt, ctx):
        ids = ctx.renderer.prompt(prompt)
        await ctx.complete(ids, max_tokens=7)
        fill(ctx, await ctx.complete(ids))
        return [ctx.sample]

    await finished(player_of(engine, generate=generate), max_tokens=20)
    assert [r.sampling.max_tokens for r in engine.requests] == [7, 20]


async def test_a_call_for_no_tokens_is_not_one_for_the_whole_budget():
    engine = Scripted("42")

    async def generate(prompt, ctx):
        await ctx.complete(ctx.renderer.prompt(prompt), max_tokens=0)

    await finished(player_of(engine, generate=generate))
    assert engine.requests[0].sampling.max_tokens == 0


async def test_sample_can_be_grown_turn_by_turn():
    async def generate(prompt, ctx):
        ids = ctx.renderer.prompt(prompt)
        ctx.sample.sequence, ctx.sample.prompt_length = Tokens.context(ids), len(ids)
        for call in range(2):
            out = await ctx.complete(ctx.sample.tokens, call=call, max_tokens=20)
            ctx.sample.append_response_tokens(
                tokens=out.ids.tolist(),
                log_probs=out.logp.tolist(),
                text=ctx.renderer.decode(out.ids.tolist()),
                meta_info={"finish_reason": {"type": out.finish}, "weight_version": int(out.versions[0])},
            )
        ctx.sample.append_response_tokens(tokens=[1, 2], trainable=False, text="!")
        return [ctx.sample]

    sample = await finished(player_of(Scripted("4", "2"), generate=generate))
    assert (sample.status, sample.response, sample.weight_versions) == (Status.COMPLETED, "42!", ["3"])
    assert sample.loss_mask == [1, 1, 1, 1, 0, 0]


def set_reward(reward):
    def change(sample):
        sample.reward = reward

    return after(change)


async def test_reward_that_it_gives_wins():
    for reward in [0.0, 0.25, True, np.float32(0.5), -3]:
        with case(reward):
            sample = await finished(player_of(Scripted("42"), generate=set_reward(reward)))
            assert (sample.reward, sample.error) == (float(reward), None)


async def test_scores_that_it_gives_are_kept():
    def change(sample):
        sample.reward, sample.scores = 0.5, {"style": 0.1}

    sample = await finished(player_of(Scripted("42"), generate=after(change)))
    assert (sample.reward, sample.scores) == (0.5, {"style": 0.1})


async def test_scores_of_the_reward_come_beside_its_own():
    def change(sample):
        sample.scores = {"calls": 2.0}

    player = player_of(Scripted("42"), generate=after(change), reward=lambda _: Scores(1.0, {"exact": 1.0}))
    assert (await finished(player)).scores == {"calls": 2.0, "exact": 1.0}


def returning(*made):
    async def generate(prompt, ctx):
        await one_call(prompt, ctx)
        return made[0](ctx.sample)

    return generate


def setting(**fields):
    def change(sample):
        for name, value in fields.items():
            setattr(sample, name, value)

    return after(change)


def raising(error):
    async def generate(prompt, ctx):
        raise error

    return generate


def not_async(prompt, ctx):
    raise RuntimeError("boom")


async def hangs(prompt, ctx):
    await asyncio.sleep(60)


async def pads(prompt, ctx):
    made = await one_call(prompt, ctx)
    ctx.sample.append_response_tokens(tokens=[0] * 58, trainable=False)
    return made


ONE = "ValueError: expected [ctx.sample], with further samples"
FAULTS = {
    "returns None": (returning(lambda sample: None), ONE),
    "returns the sample alone": (returning(lambda sample: sample), ONE),
    "returns nothing": (returning(lambda sample: []), ONE),
    "returns it twice": (returning(lambda sample: [sample, sample]), ONE),
    "returns a tuple": (returning(lambda sample: (sample,)), ONE),
    "returns another sample": (returning(lambda sample: [Sample(index=9, group_id=0)]), ONE),
    "raises": (raising(ValueError("boom\nmore")), "rollout.generate: ValueError: boom"),
    "raises before it awaits": (not_async, "rollout.generate: RuntimeError: boom"),
    "hangs": (hangs, "rollout.generate: no answer after 0.02 s"),
    "cancels itself": (raising(asyncio.CancelledError()), "cancelled"),
    "leaves it pending": (setting(status=Status.PENDING), "status is still pending"),
    "no prompt": (setting(prompt_length=0), "prompt_length = 0 of"),
    "prompt longer than the tokens": (setting(prompt_length=999), "prompt_length = 999 of"),
    "trains what nobody sampled": (
        setting(sequence=Tokens.given([1, 2], [False, True]), prompt_length=1),
        "none of the trained tokens was sampled; build the response with Tokens.drawn",
    ),
    "over budget": (pads, "61 response tokens, rollout.max_response_tokens = 60"),
    "marks it as failed": (setting(status=Status.FAILED), "set ctx.sample.status to failed"),
    "marks it as failed and says why": (setting(status=Status.FAILED, error="no page"), "no page"),
    "reward is text": (set_reward("1.0"), "str '1.0'; expected a finite number"),
    "reward is not a number": (set_reward(float("nan")), "nan; expected a finite number"),
}


async def test_fault_of_generate_ends_on_its_sample():
    for fault, (generate, error) in FAULTS.items():
        with case(fault):
            player = player_of(Scripted("42"), generate=generate, generate_timeout_s=0.02)
            sample = await finished(player)
            assert (sample.status, sample.reward) == (Status.FAILED, None)
            assert error in sample.error
            assert "\n" not in sample.error


async def test_reward_given_before_a_fault_does_not_count():
    async def generate(prompt, ctx):
        ctx.sample.reward, ctx.sample.scores = 1.0, {"style": 1.0}
        raise RuntimeError("and then it broke")

    sample = await finished(player_of(Scripted("42"), generate=generate))
    assert (sample.status, sample.reward, sample.scores) == (Status.FAILED, None, {})


async def test_fault_of_one_sample_spares_its_siblings():
    async def generate(prompt, ctx):
        if ctx.sample.index == 1:
            raise RuntimeError("boom")
        return await one_call(prompt, ctx)

    samples = await finished_group(player_of(Noise(), generate=generate, reward=lambda _: 1.0), size=3)
    assert [s.reward for s in samples] == [1.0, None, 1.0]


async def test_wrong_input_found_on_the_way_ends_the_run():
    with pytest.raises(BaseExceptionGroup) as caught:
        await finished(player_of(Scripted("42"), generate=raising(DataError("row 3 is empty"))))
    assert caught.group_contains(DataError, match="row 3 is empty")


@pytest.mark.parametrize(
    ("reward", "error"),
    [
        (lambda _: 1 / 0, "reward mine: ZeroDivisionError"),
        (lambda _: None, "NoneType None; expected a finite number"),
        (lambda _: float("inf"), "inf; expected a finite number"),
    ],
)
async def test_fault_of_the_reward_is_no_reward_of_zero(reward, error):
    sample = await finished(player_of(Scripted("42"), make_env=SingleTurn, reward=reward))
    assert (sample.status, sample.reward, sample.response) == (Status.FAILED, None, "42")
    assert error in sample.error


async def test_reward_that_cancels_itself_is_a_fault():
    async def reward(_):
        raise asyncio.CancelledError

    sample = await finished(player_of(Scripted("42"), reward=reward))
    assert (sample.status, sample.reward) == (Status.FAILED, None)
    assert "cancelled" in sample.error


async def test_a_token_that_the_model_does_not_have_was_a_traceback_in_training():
    def strange(sample):
        sample.sequence = sample.sequence + Tokens.context([264])

    sample = await finished(player_of(Scripted("42"), generate=after(strange)))
    assert sample.error is not None
    assert sample.error.startswith("rollout.generate: ValueError: token ")
    assert sample.error.endswith("is 264; the model's ids end at 263")
