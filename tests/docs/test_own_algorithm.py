"""Functions that the pages of algorithms show do what the pages say."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from pages import ROOT

from strop.algo.base import LossInputs
from strop.algo.batch import Batch, make_batch
from strop.algo.policy import PolicyGradient
from strop.algo.sequence import sums_by_sample
from strop.config.algo import Algo
from strop.plugins import resolve
from strop.sample import Group, Prompt, Sample, Status, Tokens

PAGES = [ROOT / f"docs/explanation/algorithms/{name}.md" for name in ("your_own", "process_rewards")]
FILE = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for page in PAGES:
        for name, code in FILE.findall(page.read_text()):
            (tmp_path / name).write_text(code)
    monkeypatch.chdir(tmp_path)


def own() -> PolicyGradient:
    section = Algo(advantage="own_advantage.py:above_half", policy_loss="own_loss.py:quadratic")
    return PolicyGradient(section, num_updates=1)


def step() -> Batch:
    """A right answer of two tokens, and a wrong one of one."""
    samples = [
        Sample(
            index=index,
            group_id=0,
            sequence=Tokens.context([1]) + Tokens.drawn([5] * length, [-1.0] * length, [0] * length),
            prompt_length=1,
            reward=reward,
            status=Status.COMPLETED,
        )
        for index, (reward, length) in enumerate([(1.0, 2), (0.0, 1)])
    ]
    groups = [Group(0, Prompt(id="0", messages=""), samples)]
    return make_batch(groups, num_updates=1, max_response_tokens=8, temperature=1.0)


def inputs_of(batch: Batch, ratio: list[float]) -> LossInputs:
    logp_N = torch.tensor(ratio, dtype=torch.float64).log().requires_grad_()
    zeros_N, weight_N = torch.zeros(len(ratio)), torch.full((len(ratio),), 1 / len(ratio))
    columns = dict.fromkeys((f.name for f in fields(LossInputs) if f.name.endswith("_N")), zeros_N)
    columns |= {"logp_N": logp_N, "weight_N": weight_N, "advantage_N": torch.from_numpy(batch.advantage)}
    return LossInputs(**columns, sums=sums_by_sample(torch.from_numpy(batch.sample_of_token)))


def test_the_advantage_on_the_page_is_one_or_minus_one() -> None:
    batch = step()
    own().credit(batch)
    assert batch.advantage.tolist() == [1, 1, -1]


def test_the_loss_on_the_page_has_its_minimum_where_the_clip_would_be() -> None:
    batch, algorithm = step(), own()
    algorithm.credit(batch)
    at_the_bounds, on_policy = inputs_of(batch, [1.2, 1.2, 0.8]), inputs_of(batch, [1.0, 1.0, 1.0])
    loss = algorithm.loss(at_the_bounds).total
    assert loss < algorithm.loss(on_policy).total
    assert torch.autograd.grad(loss, at_the_bounds.logp_N)[0].tolist() == pytest.approx([0, 0, 0], abs=1e-6)


def test_the_reward_of_steps_on_the_page_is_that_of_the_least() -> None:
    cited = resolve("stepwise.py:cited", key="reward.fn", names={}, group="strop.rewards")
    scores = cited(Sample(index=0, group_id=0, response="So says [1].\n\nAnd I say."))
    assert (scores.value, scores.steps.scores) == (0.0, (1.0, 0.0))
