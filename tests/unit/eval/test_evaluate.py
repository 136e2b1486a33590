"""Evaluation: the same noise every time, failures counted apart, an error that is over prompts."""

import asyncio
import json
import math

import pytest
from scripted import Noise, player_of

from strop.config.tree import EvalSet
from strop.eval.evaluate import evaluate, summarise
from strop.rollout.group import new_group
from strop.sample import Prompt, Sampling, Status

PROMPTS = [Prompt(id=str(i), messages=f"question {i}", label="a") for i in range(6)]
SECTION = EvalSet(name="held_out", source="task.py:make", n=6, samples_per_prompt=2, temperature=1.0)
SAMPLING = Sampling(max_tokens=8, temperature=1.0)


def first_letter(sample):
    """In 0 … 25: the noise of the first token."""
    return ord(sample.response[0]) - 97


async def evaluated(*, reward=first_letter, section=SECTION, seed_of=None, prompts=PROMPTS, told=None):
    player = seed_of or player_of(Noise(), reward=reward)
    return await evaluate(player, section, prompts, SAMPLING, *([told] if told else []))


def rewarded(rewards):
    """A group with these rewards; None is a sample that failed."""
    group = new_group(0, PROMPTS[0], first_index=0, size=len(rewards))
    for sample, reward in zip(group.samples, rewards, strict=True):
        sample.reward = reward
        sample.status = Status.FAILED if reward is None else Status.COMPLETED
    return group


def responses(result):
    return [[s.response for s in group.samples] for group in result.groups]


async def test_noise_is_the_same_at_every_evaluation():
    one, two = await evaluated(), await evaluated()
    assert responses(one) == responses(two)
    assert (one.mean, one.stderr) == (two.mean, two.stderr)


async def test_noise_does_not_depend_on_what_was_played_before():
    player = player_of(Noise(), reward=first_letter)
    first = await evaluated(seed_of=player)
    await evaluated(seed_of=player, prompts=PROMPTS[3:])
    assert responses(await evaluated(seed_of=player)) == responses(first)


async def test_samples_and_data_sets_have_noise_of_their_own():
    one, other = await evaluated(), await evaluated(section=SECTION.model_copy(update={"name": "other"}))
    assert len({response for group in responses(one) for response in group}) == 12
    assert responses(one) != responses(other)


async def test_every_prompt_is_played_as_often_as_asked():
    result = await evaluated()
    assert [g.prompt.id for g in result.groups] == [p.id for p in PROMPTS]
    assert [len(g.samples) for g in result.groups] == [2] * 6
    assert result.mean == pytest.approx(sum(sum(g.rewards) for g in result.groups) / 12)
    assert (result.name, result.n, result.failed) == ("held_out", 6, 0)


async def test_failed_samples_are_counted_and_not_worth_zero():
    def fails_on_prompt_0(sample):
        if sample.prompt_id == "0":
            raise RuntimeError("judge is down")
        return 1.0

    result = await evaluated(reward=fails_on_prompt_0)
    assert (result.mean, result.n, result.failed) == (1.0, 5, 2)


async def test_progress_is_told_prompt_by_prompt():
    told = []
    await evaluated(told=lambda done, of: told.append((done, of)))
    assert told == [(i, 6) for i in range(1, 7)]


async def test_no_prompts_are_no_error():
    result = await evaluated(prompts=[])
    assert (result.n, result.failed) == (0, 0)
    assert math.isnan(result.mean)


async def test_broken_engine_ends_the_evaluation():
    class Broken:
        async def generate(self, request):
            await asyncio.sleep(0)
            raise ZeroDivisionError

    with pytest.raises(BaseExceptionGroup) as caught:
        await evaluated(seed_of=player_of(Broken()))
    assert caught.group_contains(ZeroDivisionError)


def test_error_of_the_mean_is_over_prompts():
    # means per prompt 0.5, 1, 0: deviation 0.5, over the root of three prompts
    result = summarise("x", [rewarded([0, 1]), rewarded([1, 1]), rewarded([0, 0])])
    assert (result.mean, result.n) == (0.5, 3)
    assert result.stderr == pytest.approx(0.5 / math.sqrt(3))


def test_mean_is_over_samples_and_error_over_prompts_when_some_failed():
    result = summarise("x", [rewarded([1, None]), rewarded([0, 0]), rewarded([None, None])])
    assert result.mean == pytest.approx(1 / 3)
    assert (result.n, result.failed) == (2, 3)
    assert result.stderr == pytest.approx(math.sqrt(0.5) / math.sqrt(2))


@pytest.mark.parametrize(
    ("groups", "mean", "n", "failed"),
    [([], None, 0, 0), ([[None, None]], None, 0, 2), ([[1.0, 0.0]], 0.5, 1, 0)],
)
def test_what_so_few_cannot_tell_is_null(groups, mean, n, failed):
    result = summarise("x", [rewarded(rewards) for rewards in groups])
    expected = {"mean": mean, "stderr": None, "n": n, "failed": failed}
    assert json.loads(json.dumps(result.as_json(), allow_nan=False)) == expected
