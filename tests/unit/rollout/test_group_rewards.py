"""Rewards of whole groups: asked once, after every member finished, in training and evaluation alike."""

import asyncio
from dataclasses import replace

import pytest
from scripted import PROMPT, Noise, player_of

from strop.errors import RewardFailed
from strop.rewards.call import Scorer
from strop.rewards.select import Rewards
from strop.rollout.group import new_group
from strop.sample import Sampling, Scores, Status, Tokens


class Ranks:
    """Worth its place among the members, by text; remembers what it was asked about."""

    def __init__(self, error=None):
        self.asked, self.error = [], error

    async def score(self, sample):
        raise AssertionError("a group is scored in one call")

    async def score_group(self, samples):
        self.asked.append([(s.index, s.status) for s in samples])
        if self.error:
            raise self.error
        ranked = sorted(s.response for s in samples)
        return [Scores(float(ranked.index(s.response)), {"rank": 1.0}) for s in samples]


async def played(ranks, *, generate=None, purpose="sample", size=3):
    player = replace(player_of(Noise(), generate=generate), rewards=Rewards(ranks, is_group=True))
    group = new_group(0, PROMPT, first_index=0, size=size)
    await player.finish(group, Sampling(max_tokens=9), purpose=purpose, step=0)
    return group.samples


async def fill(ctx, sample, call=0):
    ids = ctx.renderer.prompt(PROMPT)
    out = await ctx.complete(ids, call=call)
    sample.sequence = Tokens.context(ids) + Tokens.drawn(out.ids, out.logp, out.versions)
    sample.prompt_length, sample.status = len(ids), Status.COMPLETED
    sample.response = ctx.renderer.decode(out.ids.tolist())


@pytest.mark.parametrize("purpose", ["sample", "eval/dev"])
async def test_members_are_scored_in_one_call_when_all_are_finished(purpose):
    ranks = Ranks()
    samples = await played(ranks, purpose=purpose)
    assert ranks.asked == [[(index, Status.COMPLETED) for index in range(3)]]
    assert sorted(s.reward for s in samples) == [0, 1, 2]
    assert all(s.scores == {"rank": 1.0} and "reward_s" in s.timing for s in samples)


async def test_a_fanned_out_trajectory_is_scored_sample_by_sample_in_the_same_call():
    async def generate(prompt, ctx):
        part = ctx.part()
        for call, sample in enumerate((ctx.sample, part)):
            await fill(ctx, sample, call)
        return [ctx.sample, part]

    ranks = Ranks()
    samples = await played(ranks, generate=generate, size=2)
    assert [len(asked) for asked in ranks.asked] == [4]
    assert sorted(s.reward for s in samples) == [0, 1, 2, 3]


async def test_a_group_with_a_failed_member_is_not_scored():
    async def generate(prompt, ctx):
        if ctx.sample.index == 1:
            raise RuntimeError("boom")
        await fill(ctx, ctx.sample)
        return [ctx.sample]

    ranks = Ranks()
    samples = await played(ranks, generate=generate)
    assert (ranks.asked, [s.reward for s in samples]) == ([], [None] * 3)
    assert [s.status is Status.FAILED for s in samples] == [False, True, False]


async def test_rewards_that_were_given_stay():
    async def generate(prompt, ctx):
        await fill(ctx, ctx.sample)
        ctx.sample.reward = 7.0 if ctx.sample.index == 1 else None
        return [ctx.sample]

    samples = await played(Ranks(), generate=generate)
    assert samples[1].reward == 7.0
    assert None not in [s.reward for s in samples]


async def test_a_failed_call_fails_every_member():
    samples = await played(Ranks(RewardFailed("reward mine: gone")))
    assert {(s.status, s.reward, s.error) for s in samples} == {(Status.FAILED, None, "reward mine: gone")}


async def test_a_reward_that_is_asked_again_does_not_play_the_sample_again():  # verifiers#1739
    answers, asked = iter([None, float("nan"), 1.0]), []

    def third_time(sample):
        asked.append((sample.index, sample.response_length))
        return next(answers)

    engine = Noise()
    scorer = Scorer(
        third_time, name="mine", timeout_s=5, retries=2, concurrency=1, sleep=lambda _: asyncio.sleep(0)
    )
    player = replace(player_of(engine), rewards=Rewards(scorer))
    group = new_group(0, PROMPT, first_index=0, size=1)
    await player.finish(group, Sampling(max_tokens=9), purpose="sample", step=0)
    assert asked == [(0, 5)] * 3
    assert len(engine.requests) == len(group.samples) == 1
    assert (group.samples[0].reward, group.samples[0].error) == (1.0, None)
