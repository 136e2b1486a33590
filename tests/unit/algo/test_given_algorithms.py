"""Supervised and preference objectives on batches: worked values, and one result for every split."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from strop.algo import preference
from strop.algo.base import LossInputs
from strop.algo.batch import make_batch
from strop.algo.given import whole_loss
from strop.algo.kto import kto
from strop.algo.open import open_given
from strop.algo.preference import Lengths
from strop.algo.sequence import sums_by_sample
from strop.config.algo import Algo
from strop.config.offline import SCORING, SHAPES, Preference
from strop.sample import Group, Prompt, Role, Sample
from strop.tokens import Tokens

OBJECTIVES = [objective for objective in SHAPES if objective not in SCORING]
PAIRS = [objective for objective in OBJECTIVES if SHAPES[objective] == "pairs"]
COLUMNS = [spec.name for spec in fields(LossInputs) if spec.name.endswith("_N")]


def sample(index, group, role, length, *, is_extra=False):
    """A response with an untrained token in its middle, if there is room for one."""
    mask = [False, *(i != 1 or length < 3 for i in range(length))]
    return Sample(
        index=index,
        group_id=group,
        trajectory_id=index - is_extra,
        role=role.value,
        sequence=Tokens.given([7] * (length + 1), mask),
        prompt_length=1,
        remove_sample=is_extra,
    )


def batch_of(roles, lengths, *, num_updates=1):
    """One group for each entry of `roles`, which names its samples."""
    groups, index, sizes = [], 0, iter(lengths)
    for number, names in enumerate(roles):
        group = Group(number, Prompt(id=str(number), messages="a"), [])
        for role in names:
            group.samples.append(sample(index, number, role, next(sizes), is_extra=role is Role.MISMATCHED))
            index += 1
        groups.append(group)
    return make_batch(groups, num_updates=num_updates, max_response_tokens=9, temperature=1.0)


def scored(batch, seed=0):
    rng = np.random.default_rng(seed)
    for what in ("old", "ref"):
        batch.scored[what] = -rng.random(batch.num_tokens).astype(np.float32) * 3
        batch.scored[what][np.concatenate([~s.sequence.mask[1:] for s in batch.samples])] = np.nan
    return batch


def shape_batch(objective, *, num_updates=1):
    pair, good, bad = (Role.CHOSEN, Role.REJECTED), (Role.DESIRABLE,), (Role.UNDESIRABLE,)
    lengths = [4, 2, 1, 5, 3, 3, 2, 6]
    roles = {
        "texts": [(Role.RESPONSE,)] * 8,
        "pairs": [pair] * 4,
        "marked": [(*kind, Role.MISMATCHED) for kind in (good, bad, bad, good)],
    }[SHAPES[objective]]
    return scored(batch_of(roles, lengths, num_updates=num_updates))


def inputs_of(algorithm, batch, rows):
    at = np.flatnonzero(np.isin(batch.sample_of_token, rows) & np.isfinite(batch.scored["old"]))
    sample_N = torch.from_numpy(batch.sample_of_token[at])
    logp_N = torch.from_numpy(batch.scored["old"][at]).double().requires_grad_()
    return LossInputs(
        logp_N=logp_N,
        entropy_N=torch.zeros(len(at)),
        old_N=logp_N.detach(),
        ref_N=torch.from_numpy(batch.scored["ref"][at]),
        behavior_N=torch.from_numpy(batch.behavior[at]),
        advantage_N=torch.from_numpy(batch.advantage[at]),
        weight_N=torch.from_numpy(algorithm.weights(batch)[at]),
        sums=sums_by_sample(sample_N),
        sample_N=sample_N,
        columns={n: torch.from_numpy(c[at]) for n, c in batch.scored.items() if n not in ("old", "ref")},
    )


def one_pair(objective, **keys):
    """log-probs of the page of formulas: pc = −10, pr = −12, rc = −11, rr = −11.5 over 10 and 8 tokens."""
    batch = batch_of([(Role.CHOSEN, Role.REJECTED)], [10, 8])
    for one in batch.samples:
        mask = np.arange(len(one.sequence)) > 0
        one.sequence = Tokens.given(one.sequence.ids, mask)
    batch = replace(batch)
    batch.scored["old"] = np.repeat(np.float32([-1.0, -1.5]), [10, 8])
    batch.scored["ref"] = np.repeat(np.float32([-1.1, -11.5 / 8]), [10, 8])
    algorithm = open_given(Algo(objective=objective, preference=Preference(**keys)))
    algorithm.credit(batch)
    return whole_loss(algorithm, batch)


WORKED = {
    "dpo": ({}, 0.62095705),
    "cdpo": ({"label_smoothing": 0.1}, 0.63595705),
    "robust_dpo": ({"label_smoothing": 0.1}, 0.60220705),
    "ipo": ({"mean_logp": False}, 12.25),
    "hinge": ({}, 0.85),
    "simpo": ({"beta": 2.0, "target_margin": 0.5}, 0.47407698),
    "nca_pair": ({}, 1.35082481),
    "sppo_hard": ({}, 36.25),
    "apo_zero": ({}, 0.96252342),
}


def test_a_pair_has_the_worked_loss_of_its_objective():
    for name, (keys, value) in WORKED.items():
        loss = one_pair("dpo" if name == "cdpo" else name, **keys)
        assert float(loss.total) == pytest.approx(value, abs=1e-5), name


def test_what_the_policy_says_a_pair_is_worth_has_trls_names():
    parts = one_pair("dpo").parts
    assert float(parts["rewards/chosen"]) == pytest.approx(0.1, abs=1e-6)
    assert float(parts["rewards/rejected"]) == pytest.approx(-0.05, abs=1e-6)
    assert float(parts["rewards/margins"]) == pytest.approx(0.15, abs=1e-6)
    assert float(parts["rewards/accuracies"]) == pytest.approx(1.0)
    assert float(parts["nll"]) == pytest.approx(1.0)


def test_the_nll_of_the_chosen_response_can_be_added_to_any_pair_loss():
    """RPO: DPO + α · NLL; CPO and ORPO have a term of their own."""
    assert float(one_pair("dpo", nll_weight=0.5).total) == pytest.approx(0.62095705 + 0.5, abs=1e-5)
    lengths = Lengths(torch.tensor(10.0), torch.tensor(8.0))
    sums = torch.tensor(-10.0), torch.tensor(-12.0)
    cpo = preference.cpo(*sums, lengths=lengths, beta=0.1, nll_weight=1.0)
    orpo = preference.orpo(*sums, lengths=lengths, odds_weight=0.1)
    assert float(one_pair("cpo", nll_weight=1.0).total) == pytest.approx(float(cpo), abs=1e-6)
    assert float(one_pair("orpo").total) == pytest.approx(float(orpo), abs=1e-6)


def test_supervised_loss_is_a_mean_over_tokens_of_the_update_not_of_means():
    """known-faults A10: one token at 1 and three at 3 are 2.5, not 2."""
    batch = batch_of([(Role.RESPONSE,), (Role.RESPONSE,)], [1, 4])
    batch.scored["old"] = np.float32([-1, -3, np.nan, -3, -3])
    algorithm = open_given(Algo(objective="nll"))
    algorithm.credit(batch)
    assert float(whole_loss(algorithm, batch).total) == pytest.approx(2.5)
    assert batch.advantage.tolist() == [1, 1, 0, 1, 1]


def test_eight_at_once_and_four_times_two_have_one_loss_and_gradient():
    """known-faults A8: a loss that is not divided by the parts of its update grows with their number."""
    for objective in OBJECTIVES:
        algorithm = open_given(Algo(objective=objective))
        batch = shape_batch(objective)
        algorithm.credit(batch)
        rows = np.flatnonzero(algorithm.contributes(batch))
        whole = inputs_of(algorithm, batch, rows)
        total = algorithm.loss(whole)
        total.total.backward()
        value, gradients, parts = 0.0, [], {}
        for part in np.array_split(rows, 4 if len(rows) == 8 else 2):
            inputs = inputs_of(algorithm, batch, part)
            loss = algorithm.loss(inputs)
            loss.total.backward()
            value += float(loss.total.detach())
            gradients.append(inputs.logp_N.grad)
            for name, each in loss.parts.items():
                parts[name] = parts.get(name, 0.0) + float(each)
        assert value == pytest.approx(float(total.total.detach()), rel=1e-6), objective
        torch.testing.assert_close(
            torch.cat(gradients), whole.logp_N.grad, rtol=1e-6, atol=1e-9, msg=f"{objective}: ".__add__
        )
        assert parts == pytest.approx({name: float(each) for name, each in total.parts.items()}, rel=1e-6), (
            objective
        )


def test_updates_do_not_see_each_other():
    for objective in OBJECTIVES:
        algorithm, both = open_given(Algo(objective=objective)), shape_batch(objective, num_updates=2)
        algorithm.credit(both)
        first = [row for row in range(len(both.samples)) if both.update[row] == 0]
        rows = [row for row in first if algorithm.contributes(both)[row]]
        alone = shape_batch(objective)
        groups = {both.samples[row].group_id for row in first}
        kept = make_batch(
            [
                Group(g, Prompt(id="", messages=""), [s for s in alone.samples if s.group_id == g])
                for g in groups
            ],
            num_updates=1,
            max_response_tokens=9,
            temperature=1.0,
        )
        for what in ("old", "ref"):
            kept.scored[what] = alone.scored[what][: kept.num_tokens]
        algorithm.credit(kept)
        own = [row for row in range(len(kept.samples)) if algorithm.contributes(kept)[row]]
        one = algorithm.loss(inputs_of(algorithm, both, rows)).total.detach()
        other = algorithm.loss(inputs_of(algorithm, kept, own)).total.detach()
        assert float(one) == pytest.approx(float(other), rel=1e-6), objective


def test_a_pair_reinforces_the_chosen_response():
    for objective in PAIRS:
        algorithm, batch = open_given(Algo(objective=objective)), shape_batch(objective)
        algorithm.credit(batch)
        inputs = inputs_of(algorithm, batch, range(8))
        algorithm.loss(inputs).total.backward()
        is_chosen = inputs.sample_N % 2 == 0
        if objective not in ("ipo", "sppo_hard", "hinge"):  # which have a target to come back to, or an end
            assert (inputs.logp_N.grad[is_chosen] < 0).all(), objective
        signs = np.where(batch.sample_of_token % 2 == 0, 1, -1)
        assert (batch.advantage == signs)[batch.mask].all(), objective


def test_marked_responses_are_measured_against_mismatched_ones():
    """z is the mean log-ratio of the mismatched samples of the update, at least 0."""
    batch = batch_of([(Role.DESIRABLE, Role.MISMATCHED), (Role.UNDESIRABLE, Role.MISMATCHED)], [1, 1, 1, 1])
    batch.scored["old"] = np.float32([-1, -1, -1, -1])
    batch.scored["ref"] = np.float32([-2, -1.5, -0.5, -0.9])
    algorithm = open_given(Algo(objective="kto"))
    algorithm.credit(batch)
    assert algorithm.contributes(batch).tolist() == [True, False, True, False]
    loss = whole_loss(algorithm, batch)
    expected = kto(
        torch.tensor([-1.0, -1.0]),
        torch.tensor([-2.0, -0.5]),
        is_desirable_S=torch.tensor([True, False]),
        reference_point=torch.tensor(0.2),
        beta=0.1,
        desirable_weight=1.0,
        undesirable_weight=1.0,
    ).mean()
    assert float(loss.parts["reference_point"]) == pytest.approx(0.2)
    assert float(loss.total) == pytest.approx(float(expected), rel=1e-5)
    assert float(loss.parts["rewards/chosen"]) == pytest.approx(0.1)
    assert float(loss.parts["rewards/rejected"]) == pytest.approx(-0.05)
    batch.scored["ref"] = np.float32([-2, -0.5, -0.5, -0.9])
    algorithm.credit(batch)
    assert float(whole_loss(algorithm, batch).parts["reference_point"]) == 0.0


def test_what_untrained_tokens_hold_changes_nothing():
    for objective in OBJECTIVES:
        algorithm, batch = open_given(Algo(objective=objective)), shape_batch(objective)
        algorithm.credit(batch)
        total = whole_loss(algorithm, batch).total
        for column in ("old", "ref"):
            batch.scored[column][~batch.mask] = 1e9
        assert float(whole_loss(algorithm, batch).total) == float(total), objective
        assert torch.isfinite(total), objective
