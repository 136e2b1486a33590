"""Process rewards: worked values of steps, their labels and what is made of them."""

import numpy as np
import pytest
import torch

from strop.algo.process import monte_carlo_labels, step_bce, step_ends, step_gains
from strop.algo.step_worth import aggregate_steps

STEPS = np.array([0.9, 0.8, 0.6])


@pytest.mark.parametrize(
    ("probabilities", "labels", "value"),
    [
        pytest.param([0.9, 0.8, 0.6], [1, 1, 0], 0.41493160, id="2.17-bce"),
        pytest.param([0.5], [0.25], 0.69314718, id="soft-label"),
    ],
)
def test_cross_entropy_at_the_ends_of_steps(probabilities, labels, value):
    logits = torch.tensor(probabilities, dtype=torch.float64).logit().requires_grad_()
    loss = step_bce(logits, torch.tensor(labels, dtype=torch.float64)).mean()
    loss.backward()
    assert loss.item() == pytest.approx(value, abs=1e-6)
    slope = (np.array(probabilities) - np.array(labels)) / len(labels)
    assert logits.grad.tolist() == pytest.approx(slope.tolist(), abs=1e-12)


@pytest.mark.parametrize(
    ("kind", "scores", "value"),
    [
        pytest.param("min", [0.9, 0.8, 0.6], 0.6, id="2.17-min"),
        pytest.param("prod", [0.9, 0.8, 0.6], 0.432, id="2.17-prod"),
        pytest.param("last", [0.9, 0.8, 0.6], 0.6, id="2.17-last"),
        pytest.param("sum", [0.9, 0.8, 0.6], 2.3, id="sum"),
        pytest.param("min", [0.2, 0.8, 0.6], 0.2, id="min-is-not-last"),
    ],
)
def test_one_number_from_all_steps(kind, scores, value):
    assert aggregate_steps(np.array(scores), kind=kind) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("completions", "kind", "value"),
    [
        pytest.param([False, True, False, False], "soft", 0.25, id="2.17-monte-carlo-soft"),
        pytest.param([False, True, False, False], "hard", 1, id="2.17-monte-carlo-hard"),
        pytest.param([False] * 4, "soft", 0, id="none-right-soft"),
        pytest.param([False] * 4, "hard", 0, id="none-right-hard"),
    ],
)
def test_label_of_a_step_from_what_follows_it(completions, kind, value):
    labels = monte_carlo_labels(np.array([completions, [True] * 4]), kind=kind)
    assert labels.tolist() == [value, 1.0]


@pytest.mark.parametrize(
    ("ids", "ends"),
    [
        ([5, 6, 0, 7, 0], [2, 4]),
        ([5, 6, 0, 7], [2, 3]),
        ([5, 0, 0, 0, 7, 0, 1], [1, 5]),
        ([0, 0, 5, 0], [3]),
        ([5], [0]),
        ([0, 1, 0], []),
        ([], []),
    ],
)
def test_steps_end_at_their_separators(ids, ends):
    assert step_ends(np.array(ids, np.int32), separators={0, 1}).tolist() == ends


def test_separators_without_words_make_no_step_to_be_paid_for():
    honest, padded = np.array([5, 0, 6, 0]), np.array([5, 0, 0, 0, 0, 6, 0])
    assert len(step_ends(padded, separators={0})) == len(step_ends(honest, separators={0}))


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_step_that_changes_nothing_gains_nothing_but_by_the_sum(place):
    longer = np.insert(STEPS, place, STEPS[place - 1])
    assert step_gains(longer, start=0.5).sum() == pytest.approx(step_gains(STEPS, start=0.5).sum())
    assert step_gains(longer, start=0.5)[place] == 0
    for kind in ("min", "prod", "last"):
        assert aggregate_steps(longer, kind=kind) <= aggregate_steps(STEPS, kind=kind)
    assert aggregate_steps(longer, kind="sum") > aggregate_steps(STEPS, kind="sum")


def test_gains_of_steps():
    assert step_gains(STEPS, start=0.5) == pytest.approx([0.4, -0.1, -0.2])
