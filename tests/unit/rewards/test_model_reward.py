"""A reward model in a run: whose ids it reads, what it refuses, and that no failure is a 0."""

import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from eager import of_transformers
from fresh import fresh

from strop.config.tree import EvalSet, Reward, Train
from strop.errors import ConfigError, RewardFailed
from strop.nn.saving import save_model
from strop.nn.value_head import ValueHead
from strop.render.bytes import ByteRenderer
from strop.render.said import Said
from strop.rewards.asking import Host
from strop.rewards.checks import check_eval_set
from strop.rewards.open import open_rewards
from strop.runtime.compute import Compute
from strop.sample import Prompt, Sample, Tokens
from strop.train.scoring import open_scorer


@pytest.fixture(scope="module")
def judge_dir(tiny_dir, tmp_path_factory):
    """The tiny model with a head of random numbers."""
    directory = tmp_path_factory.mktemp("judge")
    model = fresh(tiny_dir)
    save_model(model, directory)
    head = ValueHead(model.head_VD.shape[1])
    with torch.no_grad():
        head.weight_1D.copy_(torch.randn(head.weight_1D.shape, generator=torch.Generator().manual_seed(0)))
    head.save(directory)
    return directory


def opened(path, policy, *, group=False, **options):
    section = Reward(fn="model", group=group, options={"path": str(path), **options})
    rewards = open_rewards(section)
    rewards.prepare()
    host = Host(SimpleNamespace(), ByteRenderer(), Compute(), policy, partial(open_scorer, section=Train()))
    for guest in rewards.guests:
        assert guest.enter(host) is None
    return rewards


def sample_of(index=0, *, n=4):
    rng = np.random.default_rng(index)
    sequence = Tokens.context([1, 2, 3]) + Tokens.drawn(rng.integers(0, 256, n), [-1.0] * n, [0] * n)
    return Sample(index=index, group_id=0, prompt="ab", sequence=sequence, prompt_length=3, response="7")


def plainly(directory, ids):
    model, head = of_transformers(directory), ValueHead(64)
    head = ValueHead(model.config.hidden_size)
    head.read(directory)
    with torch.no_grad():
        return float(head(model.model(input_ids=torch.tensor([ids])).last_hidden_state[0, -1:])[0])


async def test_it_scores_the_policys_own_tokens(judge_dir, tiny_dir):
    sample = sample_of()
    scores = await opened(judge_dir, tiny_dir).score(sample)
    assert scores.value == pytest.approx(plainly(judge_dir, sample.tokens), abs=1e-5)
    assert abs(scores.value) > 1e-3


async def test_a_score_can_be_scaled(judge_dir, tiny_dir):
    plain, half = (opened(judge_dir, tiny_dir, scale=scale) for scale in (1.0, 0.5))
    assert (await half.score(sample_of())).value == (await plain.score(sample_of())).value / 2


async def test_a_group_at_once_is_scored_as_one_by_one(judge_dir, tiny_dir):
    samples = [sample_of(i, n=2 + i) for i in range(4)]
    together = await opened(judge_dir, tiny_dir, group=True, together=True).score_group(samples)
    alone = [await opened(judge_dir, tiny_dir).score(sample) for sample in samples]
    assert [s.value for s in together] == pytest.approx([s.value for s in alone], abs=1e-5)


def test_a_held_out_set_of_one_sample_a_prompt_is_scored_in_groups_too(judge_dir):
    section = Reward(fn="model", group=True, options={"path": str(judge_dir), "together": True})
    check_eval_set(section, EvalSet(name="held"))
    pairwise = Reward(fn="judge", group=True, options={"model": "policy", "form": "pairwise"})
    with pytest.raises(ConfigError, match="leaves judge nothing to compare"):
        check_eval_set(pairwise, EvalSet(name="held"))


async def test_it_reads_text_in_its_own_template_where_it_is_told_to(judge_dir, tiny_dir):
    from strop.render.open import open_renderer

    said = open_renderer(judge_dir).said(Prompt(id="", messages="ab"), "7", turns="last")
    scores = await opened(judge_dir, tiny_dir, from_text=True).score(sample_of())
    assert scores.value == pytest.approx(plainly(judge_dir, said.ids), abs=1e-5)


async def test_text_is_scored_at_the_end_of_its_turn_not_at_what_a_template_puts_behind(
    judge_dir, tiny_dir, monkeypatch
):
    class WithLineBreaks(ByteRenderer):
        def said(self, prompt, reply, *, turns):
            said = super().said(prompt, reply, turns=turns)
            return Said([*said.ids, 10], [*said.mask, False])

    monkeypatch.setattr("strop.rewards.model.open_renderer", lambda _: WithLineBreaks())
    said = ByteRenderer().said(Prompt(id="", messages="ab"), "7", turns="last")
    scores = await opened(judge_dir, tiny_dir, from_text=True).score(sample_of())
    assert scores.value == pytest.approx(plainly(judge_dir, said.ids), abs=1e-5)


def test_another_tokenizer_is_refused(judge_dir, tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"a": 0}}}))
    with pytest.raises(ConfigError, match=r"another tokenizer than the policy.*from_text = true"):
        opened(judge_dir, tmp_path)


def test_a_language_model_is_refused(tiny_dir):
    with pytest.raises(ConfigError, match="a language model without value_head"):
        opened(tiny_dir, tiny_dir)


async def test_what_is_too_long_fails_and_is_not_worth_0(judge_dir, tiny_dir):
    most = json.loads((tiny_dir / "config.json").read_text())["max_position_embeddings"]
    with pytest.raises(RewardFailed, match=f"are more than the {most} that it takes"):
        await opened(judge_dir, tiny_dir).score(sample_of(n=most))


async def test_a_score_that_is_no_number_fails_and_is_not_worth_0(judge_dir, tiny_dir, tmp_path):
    model = fresh(judge_dir)
    save_model(model, tmp_path)
    head = ValueHead(model.head_VD.shape[1])
    with torch.no_grad():
        head.bias_1.fill_(float("nan"))
    head.save(tmp_path)
    with pytest.raises(RewardFailed, match="not finite"):
        await opened(tmp_path, tiny_dir).score(sample_of())


async def test_outside_of_a_run_nobody_scores(judge_dir):
    rewards = open_rewards(Reward(fn="model", options={"path": str(judge_dir)}))
    with pytest.raises(RewardFailed, match="the run did not begin with it"):
        await rewards.score(sample_of())
