"""Every source of groups keeps the seam's promises. A new one, or a new setting, is a line in `SOURCES`."""

import asyncio
import json
import math
from contextlib import ExitStack

import pytest
from scripted import Noise, player_of

from strop.buffer.buffer import Buffer
from strop.config.tree import Rollout
from strop.errors import NothingToLearn
from strop.prompts.procedural import ProceduralSource
from strop.rollout.keep import reward_std
from strop.rollout.rollouts import Rollouts
from strop.sample import Status, Tokens
from strop.store.jsonl import Log
from strop.store.ledger import Ledger, audit, read_ledger

PER_STEP = 3


def task(rng, **_):
    return {"prompt": f"{rng.randrange(10**9)}", "label": "x"}


async def odd(sample):
    return float(ord(sample.response[0]) % 2)


async def two_parts(prompt, ctx):
    """Every other trajectory has two samples."""
    made = [ctx.sample, ctx.part()] if ctx.sample.index % 2 else [ctx.sample]
    for call, sample in enumerate(made):
        ids = ctx.renderer.prompt(prompt)
        out = await ctx.complete(ids, call=call)
        sample.sequence, sample.prompt_length = Tokens.context(ids), len(ids)
        sample.append_response_tokens(
            tokens=out.ids.tolist(), log_probs=out.logp.tolist(), text=out_text(out)
        )
        sample.status = Status.COMPLETED
    return made


def out_text(out):
    return bytes(out.ids[:-1].tolist()).decode()


def rollouts(ledger, *, reward, generate=None, **keys):
    section = Rollout(batch_size=PER_STEP, samples_per_prompt=4, max_response_tokens=8, max_tries=5, **keys)
    source = ProceduralSource(task, options={}, seed=0)
    player = player_of(Noise(), reward=reward, generate=generate)
    return Rollouts(player, source, section, keep=reward_std, ledger=ledger)


SOURCES = {
    "rollouts": rollouts,
    "rollouts with a surplus": lambda ledger, reward: rollouts(ledger, reward=reward, over_sample=2),
    "rollouts that fan out": lambda ledger, reward: rollouts(ledger, reward=reward, generate=two_parts),
}


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.slow if " " in name else ()) for name in SOURCES]
)
def make(request, tmp_path):
    """A new source, by default of groups to learn from; `name`: of its ledger."""
    with ExitStack() as logs:

        def opened(name="ledger", reward=odd):
            log = Log(tmp_path / f"{name}.jsonl")
            logs.callback(log.close)
            return SOURCES[request.param](Ledger(log), reward=reward)

        yield opened


async def filled(source, steps, *, staleness=0):
    """The groups of these steps, as a loop takes them."""
    buffer, taken = Buffer(groups_per_step=PER_STEP, staleness=staleness), []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(source.fill(buffer, steps))
        for _ in steps:
            taken.append(await buffer.take(PER_STEP))
            await buffer.release(taken[-1])
    return taken


def content(groups):
    """What a group is, without the times it took."""
    return [
        (g.id, g.prompt, g.tries, [(s.index, s.trajectory_id, s.tokens, s.reward) for s in g.samples])
        for g in groups
    ]


async def test_every_step_gets_its_groups_in_the_order_of_admission(make):
    steps = await filled(make(), range(4))
    ids = [group.id for groups in steps for group in groups]
    assert [len(groups) for groups in steps] == [PER_STEP] * 4
    assert ids == sorted(set(ids))


async def test_samples_are_finished_rewarded_and_counted_once(make):
    samples = [s for groups in await filled(make(), range(3)) for g in groups for s in g.samples]
    assert all(s.reward is not None and math.isfinite(s.reward) for s in samples)
    assert not {s.status for s in samples} & {Status.PENDING, Status.FAILED}
    assert len({s.index for s in samples}) == len(samples)
    assert all(s.sampling is not None for s in samples)


async def test_samples_belong_to_their_group_and_prompt(make):
    for group in (await filled(make(), range(1)))[0]:
        assert {(s.group_id, s.prompt_id) for s in group.samples} == {(group.id, group.prompt.id)}


@pytest.mark.parametrize("staleness", [0, 1, 2])
async def test_no_group_comes_before_there_is_room(make, staleness):
    buffer = Buffer(groups_per_step=PER_STEP, staleness=staleness)
    filling = asyncio.ensure_future(make().fill(buffer, range(10)))
    taken = [await buffer.take(PER_STEP) for _ in range(staleness + 1)]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await buffer.take(PER_STEP)
    await buffer.release(taken[0])
    assert len(await buffer.take(PER_STEP)) == PER_STEP
    filling.cancel()
    await asyncio.wait({filling})


async def test_fill_ends_after_its_last_step(make):
    buffer = Buffer(groups_per_step=PER_STEP, staleness=1)
    await make().fill(buffer, range(0))
    await make("another").fill(buffer, range(5, 7))


async def test_equal_sources_give_equal_groups(make):
    one, two = await filled(make("one"), range(3)), await filled(make("two"), range(3), staleness=2)
    assert [content(groups) for groups in one] == [content(groups) for groups in two]


@pytest.mark.parametrize("done", [0, 1, 2])
async def test_a_restored_source_goes_on_with_the_same_groups(make, done):
    straight, stopped, resumed = make("straight"), make("stopped"), make("resumed")
    expected = await filled(straight, range(4))
    await filled(stopped, range(done))
    resumed.restore(json.loads(json.dumps(stopped.state())))
    rest = await filled(resumed, range(done, 4))
    assert [content(groups) for groups in rest] == [content(groups) for groups in expected[done:]]
    assert resumed.state() == straight.state()


@pytest.mark.parametrize("value", [0.0, 1.0])
async def test_nothing_to_learn_from_ends_with_a_clear_error(make, value):
    with pytest.raises(BaseExceptionGroup) as caught:
        await filled(make(reward=lambda _: value), range(1))
    assert caught.group_contains(NothingToLearn, match=f"only 0 of 3 .*all rewards equal: {value:g}")


async def test_failures_for_ever_are_told_as_failures(make):
    with pytest.raises(BaseExceptionGroup) as caught:
        await filled(make(reward=lambda _: 1 / 0), range(1))
    assert caught.group_contains(NothingToLearn, match=r"failed: reward mine: ZeroDivisionError.*mend what")


async def test_every_group_that_was_begun_is_in_the_books(make, tmp_path):
    source = make()
    for step, groups in enumerate(await filled(source, range(3))):
        source.record_trained(step, groups)
    balance = audit(read_ledger(tmp_path / "ledger.jsonl"))
    assert balance.is_balanced
    assert (balance.trained, balance.pending) == (3 * PER_STEP, 0)
