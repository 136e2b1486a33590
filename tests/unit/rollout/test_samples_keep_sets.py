"""The sets that tokens were drawn from go with the sample: over turns, into files, into the metrics."""

from dataclasses import replace

import numpy as np
import pytest
from scripted import PROMPT, Scripted, finished, player_of

from strop.engines.base import Completion, Request
from strop.envs.calculator import Calculator
from strop.kept import IDS, OFFSETS, Kept
from strop.rollout.group import new_group
from strop.sample import Group, Prompt, Sample, Sampling, Status, Tokens
from strop.store.records import sample_from_json, sample_to_json
from strop.store.samples import read_samples, write_samples
from strop.telemetry.groups import group_metrics

CALL, TOOL, ANSWER = "<calc>6*7</calc>", "= 42", "42"
NUM_CALL, NUM_TOOL, NUM_ANSWER = len(CALL) + 1, len(TOOL) + 3, len(ANSWER) + 1


class Cutting(Scripted):
    """Draws each token from itself and its successor."""

    async def generate(self, request: Request) -> Completion:
        completion = await super().generate(request)
        spans = [np.array([i, i + 1], np.int32) for i in completion.ids]
        return replace(completion, extras=Kept.of_spans(spans).as_extras())


async def play(player, *, sampling: Sampling | None = None) -> Sample:
    group = new_group(0, PROMPT, first_index=0, size=1)
    await player.finish(group, sampling or Sampling(max_tokens=60, top_k=2), purpose="sample", step=0)
    return group.samples[0]


async def two_turns() -> Sample:
    return await play(player_of(Cutting(CALL, ANSWER), make_env=Calculator))


async def test_sets_of_all_turns_with_empty_ones_for_the_environment():
    sample = await two_turns()
    kept = Kept.of_extras(sample.extras, sample.response_length)
    assert kept.lengths.tolist() == [2] * NUM_CALL + [0] * NUM_TOOL + [2] * NUM_ANSWER
    assert not kept.lacks(sample.response_tokens.ids).any()
    assert (sample.extras[IDS].dtype, sample.extras[OFFSETS][0]) == (np.int32, 0)


async def test_nothing_is_kept_when_all_tokens_are():
    assert (await finished(player_of(Scripted(CALL, ANSWER), make_env=Calculator))).extras == {}


async def test_stored_samples_come_back_with_their_sets(tmp_path):
    sample = await two_turns()
    write_samples(tmp_path / "s.parquet", [Group(0, PROMPT, [sample])])
    for back in (*read_samples(tmp_path / "s.parquet"), sample_from_json(sample_to_json(sample))):
        assert back.sampling == sample.sampling
        for name in (IDS, OFFSETS):
            assert back.extras[name].dtype == sample.extras[name].dtype
            assert back.extras[name].tolist() == sample.extras[name].tolist()


def calls(*, keeps: bool, spoils: bool = False):
    """A generate function of one call that stores the completion's sets, or not."""

    async def generate(prompt, ctx):
        ids = ctx.renderer.prompt(prompt)
        ctx.sample.sequence, ctx.sample.prompt_length = Tokens.context(ids), len(ids)
        out = await ctx.complete(ids)
        meta = {"finish_reason": {"type": out.finish}, **(out.extras if keeps else {})}
        logp = out.logp.tolist()
        ctx.sample.append_response_tokens(tokens=out.ids.tolist(), log_probs=logp, meta_info=meta)
        if spoils:
            ctx.sample.extras[IDS] = ctx.sample.extras[IDS] + 1000
        return [ctx.sample]

    return generate


async def test_generate_function_hands_the_sets_of_its_completion_on():
    sample = await play(player_of(Cutting("42"), generate=calls(keeps=True)))
    assert (sample.error, sample.extras[OFFSETS].tolist()) == (None, [0, 2, 4, 6])


@pytest.mark.parametrize(
    ("generate", "error"),
    [
        (calls(keeps=False), "3 trained tokens have no kept set"),
        (calls(keeps=True, spoils=True), "response token 0 is not in its kept set"),
    ],
)
async def test_generate_function_that_loses_the_sets_is_told(generate, error):
    sample = await play(player_of(Cutting("42"), generate=generate))
    assert sample.status is Status.FAILED
    assert error in sample.error


async def test_generate_function_need_not_keep_sets_that_nobody_trains_on():
    greedy = Sampling(max_tokens=60, top_k=2, temperature=0)
    sample = await play(player_of(Scripted("42"), generate=calls(keeps=False)), sampling=greedy)
    assert sample.error is None


def kept(sizes: list[int], mask: list[int], *, index: int = 0, removed: bool = False) -> Sample:
    sample = Sample(index=index, group_id=0, sequence=Tokens.context([1]), prompt_length=1, reward=1.0)
    for size in sizes:
        sets = {IDS: list(range(size)), OFFSETS: [0, size]}
        sample.append_response_tokens(tokens=[0], log_probs=[-1.0], meta_info=sets)
    sample.sequence = replace(sample.sequence, mask=np.array([0, *mask], bool))
    sample.remove_sample = removed
    return sample


def test_mean_size_of_the_sets_counts_trained_tokens_of_samples_that_are_not_removed():
    samples = [kept([2, 9, 5], [1, 0, 1]), kept([100], [1], index=1, removed=True)]
    group = Group(0, Prompt(id="p", messages=""), samples)
    assert group_metrics([group], step=0)["rollout/top_p_kept_vocab"] == 3.5
    assert "rollout/top_p_kept_vocab" not in group_metrics([Group(0, PROMPT, [samples[1]])], step=0)
