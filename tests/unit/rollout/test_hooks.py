"""`rollout.hooks`: after the last token, before the reward; and what happens when one fails."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest
from cases import case
from scripted import PROMPT, Noise, Scripted, finished, finished_group, player_of

from strop.errors import PluginError
from strop.rollout.group import new_group
from strop.rollout.hooks import Hooks, Occasion, Plain, open_hook
from strop.rollout.intact import kept_intact
from strop.sample import Prompt, Sample, Sampling, Status, Tokens


def hooked(*fns, timeout_s=5.0, hooks=None, **keys):
    hooks = hooks or Hooks([(fn.__name__, Plain(fn, fn.__name__)) for fn in fns], timeout_s=timeout_s)
    return player_of(keys.pop("engine", None) or Scripted("42"), hooks=hooks, **keys)


def shout(sample):
    sample.response = f"{sample.response}!"


async def doubt(sample):
    await asyncio.sleep(0)
    sample.response = f"{sample.response}?"


def returns_it(sample):
    return sample


def raises(sample):
    raise RuntimeError("no page\nmore")


async def hangs(sample):
    await asyncio.sleep(60)


async def test_hooks_run_in_order_before_the_reward():
    rewarded = []
    player = hooked(shout, doubt, reward=lambda sample: rewarded.append(sample.response) or 1.0)
    sample = await finished(player)
    assert (rewarded, sample.response, sample.error) == (["42!?"], "42!?", None)


async def test_a_hook_may_give_the_reward():
    def gives(sample):
        sample.reward = 0.25

    assert (await finished(hooked(gives, reward=lambda _: 1 / 0))).reward == 0.25


@pytest.mark.parametrize(
    ("fn", "error"),
    [
        (returns_it, "hook returns_it: TypeError: expected None, got Sample("),
        (raises, "hook raises: RuntimeError: no page"),
        (hangs, "hook hangs: no answer after 0.02 s"),
    ],
)
async def test_a_fault_is_recorded_and_the_sample_is_not_rewarded(fn, error):
    rewarded = []
    player = hooked(fn, shout, timeout_s=0.02, reward=lambda sample: rewarded.append(1) or 1.0)
    sample = await finished(player)
    assert (sample.status, sample.reward, rewarded) == (Status.FAILED, None, [])
    assert sample.error.startswith(error)


async def test_a_hook_that_cancels_its_task_is_a_fault():
    async def cancels(sample):
        raise asyncio.CancelledError

    sample = await finished(hooked(cancels))
    assert (sample.status, sample.error) == (
        Status.FAILED,
        "the environment, a hook, the reward or rollout.generate cancelled its own task",
    )


async def test_a_sample_that_failed_before_meets_no_hook():
    async def generate(prompt, ctx):
        raise RuntimeError("boom")

    seen = []
    await finished(hooked(lambda sample: seen.append(sample), generate=generate))
    assert seen == []


async def test_hooks_see_samples_of_training_and_of_evaluation():
    seen = []

    class Notes:
        async def __call__(self, sample, occasion):
            seen.append(occasion)

    player = hooked(hooks=Hooks([("notes", Notes())]), engine=Noise(), reward=lambda _: 1.0)
    await finished_group(player, size=1, step=3)
    await player.finish(
        new_group(0, PROMPT, first_index=0, size=1), Sampling(max_tokens=9), purpose="eval/dev", step=0
    )
    assert seen == [Occasion(3, is_eval=False), Occasion(0, is_eval=True)]


async def test_a_hook_is_named_by_path():
    hook = open_hook(f"{Path(__file__)}:shout", key="rollout.hooks.0")
    assert (await finished(hooked(hooks=Hooks([("shout", hook)])))).response == "42!"


def test_a_hook_of_the_wrong_shape_is_refused_at_the_start():
    with pytest.raises(PluginError, match=r"^rollout.hooks.0 = '.*:two': two needs 'other'"):
        open_hook(f"{Path(__file__)}:two", key="rollout.hooks.0")


def two(sample, other):
    pass


def empties(sample):
    sample.sequence = Tokens.context([])


def swaps_a_token(sample):
    ids = sample.sequence.ids.copy()
    ids[-1] = 99_999_999
    sample.sequence = replace(sample.sequence, ids=ids)


def notes_an_object(sample):
    sample.metadata["page"] = object()


def spells_the_status(sample):
    sample.status = "completed"


def forgets_metadata(sample):
    sample.metadata = None


def fails_without_a_word(sample):
    sample.status = Status.FAILED


def renumbers(sample):
    sample.index += 5


async def test_a_sample_that_can_no_longer_be_trained_was_a_traceback_later():
    cases = [
        (empties, "a hook or the reward left other tokens than were drawn; of sample.sequence it may"),
        (swaps_a_token, "a hook or the reward left other tokens than were drawn"),
        (notes_an_object, "a hook or the reward left a sample.metadata: cannot be stored as JSON"),
        (spells_the_status, "a hook or the reward left sample.status = 'completed'; expected a strop.Status"),
        (forgets_metadata, "a hook or the reward left sample.metadata = None; expected a dict"),
        (fails_without_a_word, "a hook or the reward left sample.status = failed without a sample.error"),
        (renumbers, "a hook or the reward left another sample.index"),
    ]
    for fn, error in cases:
        with case(fn):
            as_hook = await finished(hooked(fn))
            in_reward = await finished(hooked(reward=lambda sample, fn=fn: fn(sample) or 1.0))
            for sample in (as_hook, in_reward):
                assert (sample.status, sample.reward) == (Status.FAILED, None)
                assert sample.error.startswith(error)
            assert as_hook.index == in_reward.index


def test_what_one_sample_does_to_its_label_reaches_no_other():
    prompt = Prompt(id="a", messages="x", label={"answers": [1]})
    group = new_group(0, prompt, first_index=0, size=2)
    group.samples[0].label["answers"].clear()
    assert (group.samples[1].label, prompt.label) == ({"answers": [1]}, {"answers": [1]})


def test_a_hook_that_forgets_the_kept_sets_was_trained_on_another_distribution():
    sample = Sample(index=0, group_id=0, sequence=Tokens.context([1]), prompt_length=1)
    sample.sampling, sample.status = Sampling(max_tokens=4, top_k=2), Status.COMPLETED
    sets = {"top_p_token_ids": [2, 5], "top_p_token_offsets": [0, 2]}
    sample.append_response_tokens(tokens=[5], log_probs=[-0.5], meta_info={"weight_version": "0", **sets})
    with kept_intact([sample]):
        pass
    assert sample.status is Status.COMPLETED
    with kept_intact([sample]):
        sample.extras = {}
    assert "1 trained tokens have no kept set" in sample.error


async def test_a_plain_hook_that_sleeps_holds_nobody_up_and_is_late_by_name():
    ticks = 0

    async def ticking():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    clock = asyncio.ensure_future(ticking())
    sample = await finished(hooked(lambda _: time.sleep(0.5), timeout_s=0.05))
    clock.cancel()
    assert sample.error == "hook <lambda>: no answer after 0.05 s"
    assert ticks > 5


def leaves_out_of_the_loss(sample):
    sample.sequence = sample.sequence.untrained()


async def test_a_hook_may_take_tokens_out_of_the_loss():
    sample = await finished(hooked(leaves_out_of_the_loss, reward=lambda _: 1.0))
    assert (sample.status, sample.effective_response_length) == (Status.COMPLETED, 0)
