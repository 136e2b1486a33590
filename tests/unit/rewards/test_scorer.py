"""What is around a reward: deadlines, retries, places, and what counts as an answer."""

import asyncio
import functools
import subprocess
import sys
import threading
import time
from fractions import Fraction

import numpy as np
import pytest
from cases import case

from strop.errors import InputError, RewardFailed
from strop.rewards.base import RewardRefused
from strop.rewards.call import Scorer
from strop.sample import Sample, Scores, Steps

SAMPLE = Sample(index=0, group_id=0, response="4")


class Naps:
    """Stands for asyncio.sleep and takes no time."""

    def __init__(self):
        self.taken = []

    async def __call__(self, seconds):
        self.taken.append(seconds)


def scorer(fn, *, timeout_s=5.0, retries=0, concurrency=4, sleep=None):
    return Scorer(
        fn,
        name="mine.py:f",
        timeout_s=timeout_s,
        retries=retries,
        concurrency=concurrency,
        sleep=sleep or Naps(),
    )


async def awaited(sample):
    await asyncio.sleep(0)
    return 0.5


class Awaited:
    async def __call__(self, sample, *, worth=0.5):
        return worth


async def test_numbers_of_every_kind_of_function_are_taken():
    cases = [
        (lambda sample: 1, 1.0),
        (lambda sample: True, 1.0),
        (lambda sample: np.float32(0.5), 0.5),
        (lambda sample: np.bool_(True), 1.0),
        (lambda sample: Fraction(1, 2), 0.5),
        (lambda sample: np.array(0.5), 0.5),
        (awaited, 0.5),
        (lambda sample: awaited(sample), 0.5),
        (functools.partial(awaited), 0.5),
        (Awaited(), 0.5),
        (functools.partial(Awaited(), worth=2), 2.0),
    ]
    for place, (fn, worth) in enumerate(cases):
        with case(place):
            scores = await scorer(fn).score(SAMPLE)
            assert scores == Scores(worth)
            assert type(scores.value) is float


async def test_a_torch_scalar_is_a_number():
    import torch

    assert await scorer(lambda sample: torch.tensor(0.5)).score(SAMPLE) == Scores(0.5)
    with pytest.raises(RewardFailed, match=r"returned Tensor tensor\(\[0., 0.\]\); expected a finite number"):
        await scorer(lambda sample: torch.zeros(2)).score(SAMPLE)


async def test_named_scores_are_kept():
    scores = await scorer(lambda sample: Scores(1, {"length": np.float64(2)})).score(SAMPLE)
    assert scores == Scores(1.0, {"length": 2.0})


def giving(value):
    return lambda sample: value


async def test_what_is_no_number_fails_and_says_what_it_was():
    cases = [
        (None, "returned NoneType None"),
        ("1", "returned str '1'"),
        ([0.0, 0.0], "returned list [0.0, 0.0]"),
        (np.zeros(2), "returned ndarray array([0., 0.])"),
        (float("nan"), "returned nan"),
        (float("inf"), "returned inf"),
        (1j, "returned complex 1j"),
        (Scores(float("nan")), "Scores.value nan"),
        (Scores(1, {"a": None}), "'a' of Scores NoneType None"),
    ]
    for returned, message in cases:
        with case(returned):
            with pytest.raises(RewardFailed) as caught:
                await scorer(giving(returned)).score(SAMPLE)
            line = f"reward mine.py:f: {message}; expected a finite number or Scores (calls: 1)"
            assert str(caught.value) == line


async def test_what_cannot_even_be_looked_at_fails_its_sample_and_not_the_run():
    cases = [
        (10**400, "OverflowError: int too large to convert to float"),
        (Scores(1.0, steps=Steps(None, ".")), "TypeError: 'NoneType' object is not iterable"),
        (Scores(1.0, steps=Steps((1.0,), "")), "Steps.separator is str ''; expected the text behind a step"),
        (Scores(1.0, None), "AttributeError: 'NoneType' object has no attribute 'items'"),
    ]
    for returned, message in cases:
        with case(returned):
            with pytest.raises(RewardFailed) as caught:
                await scorer(giving(returned)).score(SAMPLE)
            assert str(caught.value) == f"reward mine.py:f: {message} (calls: 1)"


def test_a_reward_that_waited_for_places_in_one_event_loop_waits_for_them_in_the_next():
    patient = scorer(awaited, concurrency=1)
    for _ in range(2):
        assert asyncio.run(patient.score_group([SAMPLE] * 3)) == [Scores(0.5)] * 3


async def test_a_refusal_is_not_retried():
    calls = []

    def refuses(sample):
        calls.append(1)
        raise RewardRefused("reward mine: no such judge")

    with pytest.raises(RewardRefused):
        await scorer(refuses, retries=2).score(SAMPLE)
    assert calls == [1]


async def test_an_exception_is_retried_then_told():
    calls = []

    def fails(sample):
        calls.append(1)
        raise KeyError("no")

    naps = Naps()
    with pytest.raises(RewardFailed, match=r"reward mine.py:f: KeyError: 'no' \(calls: 3\)"):
        await scorer(fails, retries=2, sleep=naps).score(SAMPLE)
    assert len(calls) == 3
    assert naps.taken == [0.1, 0.2]


async def test_a_failure_that_passes_leaves_no_trace():
    answers = iter([None, float("nan"), 1.0])
    assert await scorer(lambda sample: next(answers), retries=2).score(SAMPLE) == Scores(1.0)


async def test_wrong_input_is_not_a_failed_reward():
    def refuses(sample):
        raise InputError("the judge's key is missing")

    with pytest.raises(InputError, match="the judge's key is missing"):
        await scorer(refuses, retries=2).score(SAMPLE)


async def test_a_slow_coroutine_is_stopped():
    stopped = []

    async def slow(sample):
        try:
            await asyncio.sleep(10)
        finally:
            stopped.append(1)

    with pytest.raises(RewardFailed, match=r"no answer after 0.02 s \(reward.timeout_s\)"):
        await scorer(slow, timeout_s=0.02).score(SAMPLE)
    assert stopped == [1]


async def test_cancelling_is_not_a_failure():
    task = asyncio.ensure_future(scorer(lambda sample: time.sleep(0.1)).score(SAMPLE))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_coroutines_at_once_are_bounded():
    running, most = 0, 0

    async def counts(sample):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return 1

    limited = scorer(counts, concurrency=3)
    await asyncio.gather(*(limited.score(SAMPLE) for _ in range(12)))
    assert most == 3


async def test_retries_of_calls_that_hang_never_add_threads():
    gate, running, most, lock = threading.Event(), 0, 0, threading.Lock()

    def hangs(sample):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        gate.wait(5)
        with lock:
            running -= 1
        return 1

    limited = scorer(hangs, timeout_s=0.03, retries=3, concurrency=2)
    failed = await asyncio.gather(*(limited.score(SAMPLE) for _ in range(6)), return_exceptions=True)
    gate.set()
    assert most == 2
    assert {type(failure) for failure in failed} == {RewardFailed}
    assert "all 2 calls at once (reward.concurrency) are past 0.03 s and still running" in str(failed[-1])


async def test_places_come_back_when_hanging_calls_end():
    gate = threading.Event()
    limited = scorer(lambda sample: gate.wait(5), timeout_s=0.02, concurrency=1)
    with pytest.raises(RewardFailed):
        await limited.score(SAMPLE)
    gate.set()
    await asyncio.sleep(0.05)
    assert await limited.score(SAMPLE) == Scores(1.0)


async def test_waiting_for_a_place_does_not_count_as_time():
    limited = scorer(lambda sample: time.sleep(0.05) or 1, timeout_s=0.2, concurrency=1)
    assert await asyncio.gather(*(limited.score(SAMPLE) for _ in range(5))) == [Scores(1.0)] * 5


def test_a_reward_that_never_returns_does_not_hold_the_exit():
    """Known fault H10."""
    program = """
import asyncio, time
from strop.rewards.base import RewardRefused
from strop.rewards.call import Scorer
from strop.sample import Sample

scorer = Scorer(lambda _: time.sleep(600), name="f", timeout_s=0.05, retries=1, concurrency=2)
asyncio.run(scorer.score(Sample(index=0, group_id=0)))
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "reward f: no answer after 0.05 s (reward.timeout_s) (calls: 2)" in ended.stderr


async def test_threads_do_not_block_the_loop():
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticking = asyncio.ensure_future(tick())
    await scorer(lambda sample: time.sleep(0.1) or 1).score(SAMPLE)
    ticking.cancel()
    assert ticks >= 5


async def test_a_reward_that_exits_was_waited_for_until_its_deadline():
    with pytest.raises(RewardFailed, match=r"it ended its thread, as sys.exit\(\) does"):
        await scorer(lambda sample: sys.exit(3), timeout_s=600).score(SAMPLE)
