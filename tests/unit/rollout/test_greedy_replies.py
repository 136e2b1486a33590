"""The greedy reply that ReMax compares a group with: played and rewarded, and in nothing else."""

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np

from strop.algo.batch import make_batch
from strop.config.tree import Env, Rollout
from strop.engines.base import Completion, Request
from strop.envs.single_turn import SingleTurn
from strop.prompts.procedural import ProceduralSource
from strop.render.bytes import ByteRenderer
from strop.rewards.call import Scorer
from strop.rewards.select import Rewards
from strop.rollout.episode import Parts
from strop.rollout.group import Player
from strop.rollout.keep import judge
from strop.rollout.rollouts import Rollouts
from strop.sample import Group, Sample, Status
from strop.store.jsonl import Log
from strop.store.ledger import Event, Ledger, audit, read_ledger
from strop.telemetry.groups import group_metrics


class Echo:
    """Replies with one byte of the request's seed, greedily always with `9`."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def generate(self, request: Request) -> Completion:
        self.asked.append(request)
        digit = request.seed % 9 if request.sampling.temperature else 9
        ids = np.array([digit + 48, 256], np.int32)
        return Completion(ids, np.zeros(2, np.float32), np.zeros(2, np.int32), "stop")


def digit(sample: Sample) -> float:
    return float(sample.response[0])


def played(tmp_path: Path, reward=digit, **keys) -> tuple[list[Group], Rollouts, Echo]:
    section = Rollout(batch_size=2, samples_per_prompt=3, max_response_tokens=4, max_tries=2, **keys)
    engine = Echo()
    parts = Parts(engine, ByteRenderer(), SingleTurn, Env())  # type: ignore[arg-type]
    scorer = Scorer(reward, name="reward", timeout_s=5, retries=0, concurrency=8)
    player = replace(Player(parts, Rewards(scorer), None, seed=0), plays_greedy=True)
    source = ProceduralSource(lambda rng, **_: {"prompt": str(rng.random())}, options={}, seed=0)
    ledger = Ledger(Log(tmp_path / "ledger.jsonl"))
    rollouts = Rollouts(player, source, section, keep=None, ledger=ledger)
    return asyncio.run(rollouts._groups_of(0)), rollouts, engine


def test_it_is_drawn_greedily_from_the_whole_distribution_and_rewarded(tmp_path):
    groups, _, engine = played(tmp_path)
    assert [group.greedy_reward for group in groups] == [9.0, 9.0]
    greedy = [request.sampling for request in engine.asked if request.sampling.temperature == 0]
    assert len(greedy) == 2
    assert all(sampling.keeps_all for sampling in greedy)


def test_it_is_neither_trained_nor_counted_in_its_group(tmp_path):
    groups, _, _ = played(tmp_path)
    batch = make_batch(groups, num_updates=1, max_response_tokens=4, temperature=1.0)
    assert [len(group.samples) for group in groups] == [3, 3]
    assert len(batch.samples) == 6
    assert batch.greedy == {0: 9.0, 1: 9.0}
    metrics = group_metrics(groups, 0)
    assert metrics["reward/greedy"] == 9
    assert metrics["reward/max"] < 9
    assert metrics["rollout/samples"] == 6


def test_its_tokens_are_counted_as_drawn(tmp_path):
    _, rollouts, _ = played(tmp_path)
    assert rollouts.reports[0].num_tokens == 2 * 4 * 2


def test_it_has_an_index_of_its_own_that_the_ledger_names(tmp_path):
    groups, rollouts, _ = played(tmp_path)
    assert [sample.index for group in groups for sample in (*group.samples, *group.greedy)] == list(range(8))
    rollouts.record_trained(0, groups)
    entries = read_ledger(tmp_path / "ledger.jsonl")
    baselines = [entry for entry in entries if entry.event is Event.BASELINE]
    assert [(entry.group, entry.samples) for entry in baselines] == [(0, [3]), (1, [7])]
    balance = audit(entries)
    assert balance.is_balanced
    assert (balance.issued, balance.trained) == (2, 2)
    assert rollouts.state()["next_index"] == 8


def test_a_group_whose_greedy_reply_failed_is_dropped_by_name(tmp_path):
    (group, *_), _, _ = played(tmp_path)
    group.greedy[0].fail(RuntimeError("judge is down"))
    drop = judge(group, None)
    assert drop is not None
    assert drop.reason == "failed: judge is down"
    group.greedy[0].status, group.greedy[0].reward = Status.COMPLETED, float("nan")
    assert judge(group, None) is not None
