"""Several samples of one trajectory: flat everywhere, compared by trajectory."""

import numpy as np
import pytest
from scripted import PROMPT, Noise, finished_group, player_of

from strop.algo.batch import make_batch
from strop.algo.policy import PolicyGradient
from strop.config.tree import Algo
from strop.rollout.custom import PART
from strop.rollout.group import new_group
from strop.rollout.keep import Drop, judge, reward_std
from strop.sample import Group, Sample, Status, Tokens


async def one_part(ctx, sample, call):
    ids = ctx.renderer.prompt(PROMPT)
    out = await ctx.complete(ids, call=call)
    sample.sequence = Tokens.context(ids) + Tokens.drawn(out.ids, out.logp, out.versions)
    sample.prompt_length, sample.status = len(ids), Status.COMPLETED
    sample.response = ctx.renderer.decode(out.ids.tolist())


def fanning(*sizes):
    """A generate function whose n-th trajectory has so many samples."""

    async def generate(prompt, ctx):
        made = [ctx.sample, *(ctx.part() for _ in range(sizes[ctx.sample.index] - 1))]
        for call, sample in enumerate(made):
            await one_part(ctx, sample, call)
        return made

    return generate


async def fanned(*sizes, reward=lambda sample: float(sample.trajectory_id)):
    player = player_of(Noise(), generate=fanning(*sizes), reward=reward)
    return await finished_group(player, size=len(sizes))


def group_of(samples):
    return Group(id=0, prompt=PROMPT, samples=list(samples))


def advantages(*groups, normalize_std=False):
    batch = make_batch(list(groups), num_updates=1, max_response_tokens=60, temperature=1.0)
    PolicyGradient(Algo(normalize_std=normalize_std), num_updates=1).credit(batch)
    return {s.index: float(batch.advantage[batch.tokens_of(row)][0]) for row, s in enumerate(batch.samples)}


async def test_samples_are_flat_in_the_order_of_their_trajectories():
    samples = await fanned(1, 3, 2)
    assert [s.trajectory_id for s in samples] == [0, 1, 1, 1, 2, 2]
    assert [s.index for s in samples] == [0, 1, 1 + PART, 1 + 2 * PART, 2, 2 + PART]
    assert all(s.reward == s.trajectory_id for s in samples)


async def test_parts_are_the_same_again():
    one, two = await fanned(2, 2), await fanned(2, 2)
    assert [(s.index, s.tokens) for s in one] == [(s.index, s.tokens) for s in two]
    assert len({tuple(s.tokens) for s in one}) == 4


async def test_one_and_zero_fanned_to_four_samples_have_a_baseline_of_a_half():
    samples = await fanned(3, 1, reward=lambda sample: 1.0 - sample.trajectory_id)
    assert [s.reward for s in samples] == [1, 1, 1, 0]
    assert advantages(group_of(samples)) == {0: 0.5, PART: 0.5, 2 * PART: 0.5, 1: -0.5}


def finished(group_id, rewards):
    group = new_group(group_id, PROMPT, first_index=10 * group_id, size=len(rewards))
    for sample, reward in zip(group.samples, rewards, strict=True):
        sample.sequence, sample.prompt_length = Tokens.context([1]) + Tokens.drawn([2], [-1.0], [0]), 1
        sample.status, sample.reward = Status.COMPLETED, reward
    return group


@pytest.mark.parametrize("normalize_std", [False, True])
def test_groups_of_four_three_and_four_equal_rewards_give_exactly_zero(normalize_std):
    groups = [finished(i, [5.0] * size) for i, size in enumerate((4, 3, 4))]
    assert set(advantages(*groups, normalize_std=normalize_std).values()) == {0.0}


async def test_many_parts_of_one_trajectory_are_no_spread_of_rewards():
    samples = await fanned(3, 1, reward=lambda _: 0.1)
    assert reward_std(group_of(samples)) == Drop("all rewards equal: 0.1")


async def test_keep_and_rewards_get_samples_never_lists():
    seen = []
    samples = await fanned(2, 3, reward=lambda sample: seen.append(sample) or 1.0)
    assert all(isinstance(s, Sample) for s in seen)
    assert len(seen) == 5
    assert judge(group_of(samples), lambda group: len(group.samples) == 5) is None


async def test_a_part_that_failed_drops_the_group():
    def reward(sample):
        return 1 / 0 if sample.index > PART else 1.0

    samples = await fanned(2, 2, reward=reward)
    verdict = judge(group_of(samples), None)
    assert [s.status is Status.FAILED for s in samples] == [False, False, False, True]
    assert "ZeroDivisionError" in verdict.reason


async def test_a_trajectory_stays_in_one_update():
    samples = await fanned(1, 4, 1, 2)
    batch = make_batch([group_of(samples)], num_updates=2, max_response_tokens=60, temperature=1.0)
    updates = {s.trajectory_id: set() for s in samples}
    for sample, update in zip(batch.samples, batch.update.tolist(), strict=True):
        updates[sample.trajectory_id].add(update)
    assert updates == {0: {0}, 1: {0}, 2: {1}, 3: {1}}


async def test_a_part_carries_what_the_sample_carries():
    async def generate(prompt, ctx):
        ctx.sample.metadata["seen"] = [1]
        part = ctx.part()
        part.metadata["seen"].append(2)
        for call, sample in enumerate((ctx.sample, part)):
            await one_part(ctx, sample, call)
        return [ctx.sample, part]

    first, part = await finished_group(player_of(Noise(), generate=generate, reward=lambda _: 1.0), size=1)
    assert (part.prompt_id, part.label, part.sampling) == (first.prompt_id, first.label, first.sampling)
    assert (first.metadata["seen"], part.metadata["seen"]) == ([1], [1, 2])


@pytest.mark.parametrize("where", ["another's", "not of the context"])
async def test_a_sample_from_elsewhere_is_refused(where):
    others = []

    async def generate(prompt, ctx):
        await one_part(ctx, ctx.sample, 0)
        stranger = ctx.part() if where == "another's" else Sample(index=77, group_id=0)
        await one_part(ctx, stranger, 1)
        others.append(stranger)
        return [ctx.sample, others[0]] if where == "another's" else [ctx.sample, stranger]

    samples = await finished_group(player_of(Noise(), generate=generate, reward=lambda _: 1.0), size=2)
    assert "expected [ctx.sample], with further samples" in samples[-1].error


def test_equal_rewards_are_told_by_trajectory():
    group = finished(0, [0.1] * 8)
    for sample in group.samples[:6]:
        sample.trajectory_id = 0
    assert group.has_equal_rewards
    assert np.allclose(group.trajectory_rewards, [0.1] * 3)
