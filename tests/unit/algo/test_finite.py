"""What is not a number on a trained token is caught by its name, whatever the loss would make of it."""

import re
from dataclasses import replace
from itertools import product

import pytest
import torch

from strop.algo.base import LossInputs
from strop.algo.open import open_algorithm
from strop.algo.sequence import sums_by_sample
from strop.algo.value import critic_loss
from strop.config.algo import Algo
from strop.config.offline import SCORING, SHAPES
from strop.config.teacher import Teacher
from strop.errors import NonFinite

N = 4
SAMPLE = torch.tensor([0, 0, 1, 1])
BAD = [torch.nan, torch.inf, -torch.inf]
OF_ROWS = [name for name, shape in SHAPES.items() if shape != "marked" and name not in SCORING]
TAUGHT = Algo(advantage="none", teacher=Teacher(model="m", form="full"), entropy_coef=0.1)


def inputs_of(*, seed=0):
    draw = torch.Generator().manual_seed(seed)

    def column():
        return -torch.rand(N, generator=draw)

    return LossInputs(
        logp_N=column().requires_grad_(),
        entropy_N=column().requires_grad_(),
        old_N=column(),
        ref_N=column(),
        behavior_N=column(),
        advantage_N=column(),
        weight_N=torch.tensor([0.4, 0.0, 0.3, 0.3]),
        sums=sums_by_sample(SAMPLE),
        sample_N=SAMPLE,
        columns={"divergence": column()},
    )


def broken(name, place, bad):
    """Inputs in which one token of a column is not a number."""
    inputs = inputs_of()
    column = inputs.columns[name] if name in inputs.columns else getattr(inputs, f"{name}_N")
    worse = column.detach().clone()
    worse[place] = bad
    if name in inputs.columns:
        return replace(inputs, columns={name: worse})
    return replace(inputs, **{f"{name}_N": worse.requires_grad_(column.requires_grad)})


COLUMNS = {
    "logp": "log-prob",
    "old": "old log-prob",
    "ref": "ref log-prob",
    "advantage": "advantage",
    "entropy": "entropy",
    "divergence": "divergence",
}


def refusal(loss, of):
    try:
        loss(of)
    except NonFinite as error:
        return str(error)
    return "nothing was said"


def test_a_column_of_the_policy_loss_is_named():
    algorithm = open_algorithm(TAUGHT, num_updates=2)
    for name, bad in product(COLUMNS, BAD):
        said = rf"^{COLUMNS[name]} of 1 of 3 trained tokens is not finite .* token 2 of .* has "
        assert re.search(said, refusal(algorithm.loss, broken(name, 2, bad))), (name, bad)
        assert refusal(algorithm.loss, broken(name, 1, bad)) == "nothing was said", (name, bad)


@pytest.mark.parametrize("clamped", [torch.inf, -torch.inf])
def test_an_infinite_old_log_prob_is_not_a_large_loss(clamped):
    """The ratio is clamped at exp(±20): the sum would be 4.85e8 or 0, and finite."""
    with pytest.raises(NonFinite, match=r"^old log-prob of 1 of 3"):
        open_algorithm(Algo(), num_updates=2).loss(broken("old", 0, clamped))


def test_a_sampled_log_prob_that_is_the_old_one_is_named_with_the_way_out():
    algorithm = open_algorithm(Algo(old="behavior"), num_updates=1)
    with pytest.raises(NonFinite, match=r"^behavior log-prob of 1 of 3 .*: mask it$"):
        algorithm.loss(broken("behavior", 3, torch.nan))
    algorithm.loss(broken("old", 3, torch.nan))


def test_a_sampled_log_prob_that_nothing_asks_for_may_be_missing():
    assert open_algorithm(Algo(), num_updates=1).loss(broken("behavior", 0, torch.nan)).total.isfinite()


def test_a_log_prob_of_rows_is_named():
    for name, bad in product(OF_ROWS, BAD):
        algorithm = open_algorithm(Algo(objective=name), num_updates=1)
        said = refusal(algorithm.loss, broken("logp", 3, bad))
        assert said.startswith("log-prob of 1 of 3"), (name, bad)
        assert refusal(algorithm.loss, broken("logp", 1, bad)) == "nothing was said", (name, bad)


def test_a_reference_that_is_not_a_number_is_named_where_a_sigmoid_would_hide_it():
    algorithm = open_algorithm(Algo(objective="dpo"), num_updates=1)
    for bad in BAD:
        assert refusal(algorithm.loss, broken("ref", 2, bad)).startswith("ref log-prob of 1 of 3"), bad


def test_a_column_of_the_critics_loss_is_named():
    names, weight_N = ("value", "old value", "return"), torch.tensor([0.5, 0.0, 0.5])

    def loss(broken):
        name, place, bad = broken
        columns = {each: torch.zeros(3) for each in names}
        columns[name][place] = bad
        value_N, old_N, return_N = columns.values()
        return critic_loss(value_N, old_N, return_N=return_N, weight_N=weight_N, clip=0.2).total

    for name, bad in product(names, BAD):
        said = refusal(loss, (name, 2, bad))
        assert said.startswith(f"{name} of 1 of 2 trained tokens is not finite"), (name, bad)
        assert loss((name, 1, bad)).isfinite(), (name, bad)
