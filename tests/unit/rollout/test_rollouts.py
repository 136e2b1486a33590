"""Rounds of rollouts: what is kept, what is dropped and why, and when to give up."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from strop.buffer.buffer import Buffer
from strop.config.tree import Env, Rollout
from strop.engines.base import Completion, Request
from strop.envs.single_turn import SingleTurn
from strop.errors import NothingToLearn
from strop.prompts.procedural import ProceduralSource
from strop.render.bytes import ByteRenderer
from strop.rewards.call import Scorer
from strop.rewards.select import Rewards
from strop.rollout.episode import Parts
from strop.rollout.group import Player
from strop.rollout.keep import Drop, Keep, reward_std, reward_std_or_fill
from strop.rollout.rollouts import Rollouts
from strop.sample import Group, Sample
from strop.store.jsonl import Log
from strop.store.ledger import Ledger, audit, read_ledger


class Echo:
    """An engine that replies with one byte of the request's seed, then stops."""

    async def generate(self, request: Request) -> Completion:
        ids = np.array([request.seed % 10 + 48, 256], np.int32)
        return Completion(ids, np.zeros(2, np.float32), np.zeros(2, np.int32), "stop")


def task(rng, **_):
    return {"prompt": f"{rng.randrange(100)}", "label": "x"}


def rollouts(tmp_path: Path, reward, *, keep: Keep | None = None, **keys) -> tuple[Rollouts, Path]:
    section = Rollout(batch_size=3, samples_per_prompt=2, max_response_tokens=4, **keys)
    parts = Parts(Echo(), ByteRenderer(), SingleTurn, Env())  # type: ignore[arg-type]
    scorer = Scorer(reward, name="reward", timeout_s=5, retries=0, concurrency=8)
    player = Player(parts, Rewards(scorer), None, seed=0)
    log = Log(tmp_path / "ledger.jsonl")
    source = ProceduralSource(task, options={}, seed=0)
    return Rollouts(player, source, section, keep=keep, ledger=Ledger(log)), tmp_path / "ledger.jsonl"


async def fill(source: Rollouts, steps: int = 1) -> list[list[Group]]:
    buffer, taken = Buffer(groups_per_step=3, staleness=0), []

    async def loop() -> None:
        for step in range(steps):
            taken.append(await buffer.take(3))
            source.record_trained(step, taken[-1])
            await buffer.release(taken[-1])

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(loop())
        tasks.create_task(source.fill(buffer, range(steps)))
    return taken


def parity(sample: Sample) -> float:
    return float(ord(sample.response[0]) % 2)


async def test_samples_of_a_group_have_their_own_noise(tmp_path):
    source, _ = rollouts(tmp_path, parity)
    (groups,) = await fill(source)
    assert [s.index for g in groups for s in g.samples] == list(range(6))
    assert len({s.response for g in groups for s in g.samples}) > 2


async def test_dropped_groups_are_replaced_and_named(tmp_path):
    source, ledger = rollouts(tmp_path, parity, keep=reward_std)
    taken = await fill(source, steps=4)
    assert all(len(set(g.rewards)) == 2 for groups in taken for g in groups)
    balance = audit(read_ledger(ledger))
    assert balance.is_balanced
    assert (balance.trained, balance.pending) == (12, 0)
    assert set(balance.reasons) == {"all rewards equal: 0", "all rewards equal: 1"}


async def test_all_groups_equal_for_ever_ends_with_a_clear_error(tmp_path):
    source, _ = rollouts(tmp_path, lambda _: 0.5, keep=reward_std, max_tries=4)
    with pytest.raises(BaseExceptionGroup) as caught:
        await fill(source)
    message = (
        r"after rollout.max_tries = 4 rounds \(12 groups\) only 0 of 3 .*dropped: 12 × all rewards equal: 0.5"
    )
    assert caught.group_contains(NothingToLearn, match=message)


async def test_surplus_groups_are_dropped_by_name(tmp_path):
    source, ledger = rollouts(tmp_path, parity, over_sample=2)
    await fill(source)
    balance = audit(read_ledger(ledger))
    assert balance.is_balanced
    assert balance.reasons == {"surplus": 2}


async def test_failed_reward_is_never_a_reward_of_zero(tmp_path):
    calls = 0

    def sometimes(sample: Sample) -> float:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("judge is down")
        return 0.0

    source, ledger = rollouts(tmp_path, sometimes)
    (groups,) = await fill(source)
    assert all(s.reward is not None for g in groups for s in g.samples)
    (reason,) = audit(read_ledger(ledger)).reasons
    assert reason.startswith("failed: ")
    assert "judge is down" in reason


async def test_accuracy_before_the_filter_is_reported_apart(tmp_path):
    source, _ = rollouts(tmp_path, parity, keep=reward_std)
    await fill(source)
    report = source.reports[0]
    assert len(report.cells) == 2 * report.issued
    assert sum(report.dropped.values()) == report.issued - 3


async def test_state_restores_prompts_and_counters(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, _ = rollouts(tmp_path / "a", parity)
    first, second = await fill(one, steps=2)
    other, _ = rollouts(tmp_path / "b", parity)
    await fill(other, steps=1)
    fresh, _ = rollouts(tmp_path / "b", parity)
    fresh.restore(other.state())
    buffer = Buffer(groups_per_step=3, staleness=0)
    await fresh.fill(buffer, range(1, 2))
    again = await buffer.take(3)
    assert [g.id for g in again] == [g.id for g in second]
    assert [s.tokens for g in again for s in g.samples] == [s.tokens for g in second for s in g.samples]
    assert first != second


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [(False, "rollout.keep"), (Drop("too easy"), "too easy"), (None, "failed: rollout.keep: TypeError")],
)
async def test_keep_functions_drop_with_a_reason(tmp_path, verdict, reason):
    verdicts = iter([verdict])
    source, ledger = rollouts(tmp_path, parity, keep=lambda _: next(verdicts, True))
    await fill(source)
    (found,) = audit(read_ledger(ledger)).reasons
    assert found.startswith(reason)


async def test_a_keep_function_that_took_a_sample_out_left_it_in_no_book(tmp_path):
    verdicts = iter([lambda group: group.samples.pop()])
    source, ledger = rollouts(tmp_path, parity, keep=lambda group: bool(next(verdicts, bool)(group) or True))
    await fill(source)
    (found,) = audit(read_ledger(ledger)).reasons
    assert found.startswith("failed: rollout.keep: ValueError: it changed group.samples")


async def test_a_short_step_is_filled_only_when_nothing_better_came(tmp_path):
    def rare(sample: Sample) -> float:
        return float(sample.index in (2, 7))

    source, ledger = rollouts(tmp_path, rare, keep=reward_std_or_fill, max_tries=2)
    (groups,) = await fill(source)
    assert [g.id for g in groups] == [0, 1, 3]
    balance = audit(read_ledger(ledger))
    assert balance.is_balanced
    assert balance.reasons == {"all rewards equal: 0": balance.dropped}
    assert source.reports[0].rounds == 2


async def test_filling_waits_for_the_last_round(tmp_path):
    source, _ = rollouts(tmp_path, lambda s: float(s.index == 12), keep=reward_std_or_fill, max_tries=3)
    (groups,) = await fill(source)
    assert source.reports[0].rounds == 3
    assert [g.id for g in groups] == [0, 1, 6]
