"""The contracts of advantages and policy losses, each tried out on a made-up step."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from strop.algo.base import LossInputs
from strop.algo.batch import Batch, make_batch
from strop.algo.credit import open_advantage
from strop.algo.custom import check_functions
from strop.algo.policy_losses import PolicyLoss, open_policy_loss
from strop.algo.sequence import sums_by_sample
from strop.config.algo import Algo
from strop.errors import PluginError
from strop.finding import Finding, Level
from strop.plugins import user_code
from strop.sample import Group, Prompt, Sample, Tokens

# N tokens

_REWARDS = (1.0, 0.0, 0.25, 1.0, 0.1, 0.1, 0.1, 0.1)
_GROUP_SIZE = 4
_COLUMNS = ("logp_N", "entropy_N", "old_N", "ref_N", "behavior_N", "advantage_N", "weight_N")


def advantage_findings(spec: str) -> Iterator[Finding]:
    """A finite number for every trained token, the same twice. Raises PluginError."""
    section, about = Algo(advantage=spec), "advantage"
    check_functions(section)
    advantage, batch = open_advantage(section), _step()
    nothing_N = np.zeros(batch.num_tokens)
    with user_code(PluginError, spec):
        first, again = advantage(batch, nothing_N), advantage(batch, nothing_N)
    yield Finding(Level.OK, about, f"one finite number for each of {batch.num_tokens} response tokens")
    if np.array_equal(first, again):
        yield Finding(Level.OK, "twice", "the same step gives the same advantages")
    else:
        text = "the same step gives other advantages the second time: a resumed run will not repeat itself"
        yield Finding(Level.WARN, "twice", text)


def policy_loss_findings(spec: str) -> Iterator[Finding]:
    """A finite loss a token with a gradient, inputs left alone, nothing that depends on the split. Raises
    PluginError."""
    section = Algo(policy_loss=spec)
    check_functions(section)
    loss, batch = open_policy_loss(section), _step()
    whole = _inputs(batch, np.arange(batch.num_tokens))
    before = {name: _column(whole, name).detach().clone() for name in _COLUMNS}
    with user_code(PluginError, spec):
        total = _total(loss, whole)
    if not torch.isfinite(total) or not total.requires_grad:
        wrong = (
            "is not finite" if total.requires_grad else "has no gradient: it does not depend on inputs.logp_N"
        )
        yield Finding(Level.FAIL, "loss", f"the loss {wrong}")
        return
    (gradient_N,) = torch.autograd.grad(total, whole.logp_N)
    yield Finding(
        Level.OK, "loss", f"{float(total.detach()):.4g}, with a gradient, of {batch.num_tokens} tokens"
    )
    changed = [name for name, column in before.items() if not torch.equal(column, _column(whole, name))]
    if changed:
        yield Finding(Level.FAIL, "inputs", f"it changed inputs.{changed[0]}")
    yield _of_split(loss, batch, gradient_N)


def _column(inputs: LossInputs, name: str) -> torch.Tensor:
    """One column by name."""
    return {
        "logp_N": inputs.logp_N,
        "entropy_N": inputs.entropy_N,
        "old_N": inputs.old_N,
        "ref_N": inputs.ref_N,
        "behavior_N": inputs.behavior_N,
        "advantage_N": inputs.advantage_N,
        "weight_N": inputs.weight_N,
    }[name]


def _of_split(loss: PolicyLoss, batch: Batch, whole_N: torch.Tensor) -> Finding:
    """Sample by sample, each gradient must be what it is among the others."""
    for row in range(len(batch.samples)):
        span = batch.tokens_of(row)
        part = _inputs(batch, np.arange(span.start, span.stop))
        (gradient_N,) = torch.autograd.grad(_total(loss, part), part.logp_N)
        if not torch.allclose(gradient_N, whole_N[span], rtol=1e-4, atol=1e-7):
            text = (
                "a sample's gradient depends on the others of its micro-batch; ask inputs.sums, never .mean()"
            )
            return Finding(Level.FAIL, "split", text)
    return Finding(Level.OK, "split", "the gradient does not depend on how an update is split")


def _total(loss: PolicyLoss, inputs: LossInputs) -> torch.Tensor:
    return (inputs.weight_N * loss(inputs).loss_N).sum()


def _step() -> Batch:
    """Two groups of replies of one to four tokens; the second has equal rewards."""
    samples = [_sample(index, reward) for index, reward in enumerate(_REWARDS)]
    members = [samples[at : at + _GROUP_SIZE] for at in range(0, len(samples), _GROUP_SIZE)]
    groups = [Group(number, Prompt(id=str(number), messages=""), of) for number, of in enumerate(members)]
    batch = make_batch(groups, num_updates=1, max_response_tokens=4, temperature=1.0)
    batch.advantage = batch.spread(batch.rewards - batch.rewards.mean())
    return batch


def _sample(index: int, reward: float) -> Sample:
    length = 1 + index % 4
    drawn = Tokens.drawn(range(length), np.linspace(-2, -0.5, length, dtype=np.float32), [0] * length)
    sequence = Tokens.context([1]) + drawn
    return Sample(
        index=index, group_id=index // _GROUP_SIZE, sequence=sequence, prompt_length=1, reward=reward
    )


def _inputs(batch: Batch, rows: np.ndarray) -> LossInputs:
    old_N = torch.from_numpy(batch.behavior[rows])
    shift_N = torch.from_numpy(np.sin(rows).astype(np.float32) / 4)
    inputs = LossInputs(
        logp_N=old_N + shift_N,
        entropy_N=-old_N,
        old_N=old_N,
        ref_N=old_N - shift_N,
        behavior_N=old_N,
        advantage_N=torch.from_numpy(batch.advantage[rows]),
        weight_N=torch.full((len(rows),), 1 / batch.num_tokens),
        sums=sums_by_sample(torch.from_numpy(batch.sample_of_token[rows])),
    )
    return replace(inputs, logp_N=inputs.logp_N.requires_grad_())
