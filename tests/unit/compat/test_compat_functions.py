"""Rewards, filters and hooks with slime's signatures, over finished samples; all of them get flat lists."""

from pathlib import Path

import pytest
from slime_run import runtime

from strop.compat import functions
from strop.compat.filters import DynamicFilterOutput, check_reward_nonzero_std
from strop.compat.sample import Sample as SlimeSample
from strop.config.tree import Reward
from strop.errors import PluginError, RewardFailed
from strop.rewards.open import open_rewards
from strop.rollout.custom import PART
from strop.rollout.hooks import HookFailed, Hooks, Occasion
from strop.rollout.keep import Drop, judge
from strop.sample import Group, Prompt, Sample, Status, Tokens

EXAMPLES = Path(__file__).parents[3] / "examples/slime_functions"
PROMPT = Prompt(id="p", messages="?", label="4")


def finished(index, reward=None, *, trajectory=-1, response="a1"):
    return Sample(
        index=index,
        group_id=0,
        trajectory_id=trajectory,
        prompt="?",
        label="4",
        sequence=Tokens.context([257, 63, 256, 258]) + Tokens.drawn([97, 49], [-0.5, -0.5], [1, 1]),
        prompt_length=4,
        response=response,
        reward=reward,
        status=Status.COMPLETED,
    )


def group_of(*rewards):
    return Group(id=0, prompt=PROMPT, samples=[finished(i, reward) for i, reward in enumerate(rewards)])


@pytest.fixture
def run(tiny_dir):
    return runtime(tiny_dir, serves=False)


@pytest.fixture
def scored(tiny_dir):
    """A run whose rewards are tables."""
    return runtime(tiny_dir, "--prompt-data /a --reward-key score", serves=False)


def rewards_of(spec, run, *, group=False):
    reward = functions.open_reward(spec, run, key="reward.fn", is_group=group)
    section = Reward(fn=spec, group=group, score_key=run.config.reward.score_key, retries=0)
    return open_rewards(section, names={spec: reward})


async def test_a_reward_of_one_sample_sees_slimes_fields(run):
    seen = []

    async def reward_func(args, sample, **kwargs):
        seen.append(sample)
        return len(sample.tokens)

    reward = functions.Reward(reward_func, run)
    assert await reward(finished(3)) == 6
    sample = seen[0]
    assert (sample.index, sample.response, sample.label, sample.response_length) == (3, "a1", "4", 2)
    assert (sample.prompt, sample.status) == ("<|user|>?<|end|><|assistant|>", SlimeSample.Status.COMPLETED)


async def test_the_examples_reward_is_a_table_of_which_one_entry_is_trained(scored):
    rewards = rewards_of(f"slime:{EXAMPLES}/reward.py:reward_func", scored)
    scores = await rewards.score(finished(0))
    assert (scores.value, scores.named["length"]) == (0.5, 2.0)
    await rewards.close()


async def test_a_table_without_the_key_is_a_failure_that_says_what_there_is(tiny_dir):
    run = runtime(tiny_dir, "--prompt-data /a --reward-key scor", serves=False)
    with pytest.raises(RewardFailed, match="score"):
        await rewards_of(f"slime:{EXAMPLES}/reward.py:reward_func", run).score(finished(0))


async def test_a_batched_reward_is_asked_once_with_flat_samples(run):
    rewards = rewards_of(f"slime:{EXAMPLES}/reward.py:batched_custom_rm", run, group=True)
    samples = [finished(0, response="ab"), finished(1, response="11"), finished(1 + PART, trajectory=1)]
    assert [s.value for s in await rewards.score_group(samples)] == [0.0, 2.0, 0.5]


@pytest.mark.parametrize("wrong", ["not_async", "two_needed"])
def test_a_reward_of_the_wrong_shape_is_refused_at_the_start(run, wrong):
    with pytest.raises(
        PluginError, match=r"reward.fn = 'slime:.*(must be `async def`|none of slime's signatures)"
    ):
        functions.open_reward(f"slime:{__file__}:{wrong}", run, key="reward.fn", is_group=False)


def not_async(args, sample):
    return 0.0


async def two_needed(args, sample, other):
    return 0.0


async def hook(args, sample, *, rollout_id=None, evaluation=False):
    sample.metadata["seen"] = (rollout_id, evaluation)


def returns_it(args, sample):
    sample.remove_sample = True
    return sample


def masks(args, sample):
    sample.loss_mask = [0, 1]


def returns_text(args, sample):
    return "done"


def no_digit(args, samples, **kwargs):
    return DynamicFilterOutput(keep=False, reason="no digit", keep_when_insufficient=True)


def yes(args, samples):
    assert all(isinstance(sample, SlimeSample) for sample in samples)
    return True


@pytest.mark.parametrize(
    ("fn", "verdict"),
    [
        (no_digit, Drop("no digit", may_fill=True)),
        (yes, None),
        (check_reward_nonzero_std, Drop("zero_std_0.1")),
    ],
)
def test_filters_say_keep_or_why_not(run, fn, verdict):
    assert judge(group_of(*[0.1] * 8), functions.Keep(fn, run)) == verdict


def test_slimes_own_filter_keeps_rewards_that_differ(run, scored):
    assert judge(group_of(0.0, 1.0), functions.Keep(check_reward_nonzero_std, run)) is None
    assert judge(group_of(0.0, 1.0), functions.Keep(check_reward_nonzero_std, scored)) is None


def test_a_filter_of_a_fanned_out_group_gets_samples_never_lists(run):
    group = Group(id=0, prompt=PROMPT, samples=[finished(0, 1.0), finished(PART, 1.0, trajectory=0)])
    assert judge(group, functions.Keep(yes, run)) is None


def test_a_filter_that_returns_something_else_is_a_failure(run):
    verdict = judge(group_of(0.0, 1.0), functions.Keep(lambda args, samples: None, run))
    assert verdict.reason == "failed: rollout.keep: TypeError: expected a bool or a Drop, got None"


async def test_hooks_change_samples_in_place_or_return_them(run):
    sample = finished(0)
    for fn in (hook, returns_it, masks):
        await functions.SampleHook(fn, run)(sample, Occasion(3, is_eval=True))
    assert sample.metadata["seen"] == (3, True)
    assert (sample.remove_sample, sample.loss_mask) == (True, [0, 1])


async def test_a_hook_that_returns_something_else_is_a_type_error(run):
    hooks = Hooks([("mine", functions.SampleHook(returns_text, run))])
    with pytest.raises(HookFailed, match="hook mine: TypeError: expected a Sample or None, got 'done'"):
        await hooks.run(finished(0), Occasion(0, is_eval=False))


async def test_a_step_filter_removes_samples_from_training_alone(run):
    def drop_first(args, groups):
        groups[0][0].remove_sample = True

    kept = [group_of(0.0, 1.0), group_of(1.0, 0.0)]
    await functions.StepFilter(drop_first, run)(kept, kept)
    assert [[s.remove_sample for s in group.samples] for group in kept] == [[True, False], [False, False]]
    assert [s.reward for s in kept[0].samples] == [0.0, 1.0]


async def test_a_process_sees_every_group_and_changes_none(run):
    seen = []

    def process(args, all_samples, data_source):
        seen.append((len(all_samples), data_source))
        all_samples[0][0].remove_sample = True

    every = [group_of(0.0), group_of(1.0)]
    await functions.StepProcess(process, run)(every[:1], every)
    assert seen == [(2, None)]
    assert not every[0].samples[0].remove_sample


def test_every_kind_of_function_is_opened_by_path(run):
    here = f"slime:{__file__}"
    assert functions.open_hook(f"{here}:hook", run, key="rollout.hooks.0").fn is not None
    assert functions.open_keep(f"{here}:no_digit", run).fn is not None
    for wrong, opened in ((f"{here}:hook", functions.open_keep), (f"{here}:two_needed", functions.open_keep)):
        with pytest.raises(PluginError, match=r"rollout.keep = "):
            opened(wrong, run)
