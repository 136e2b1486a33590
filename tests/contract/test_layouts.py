"""Loss and gradient of an update are one, whatever holds its tokens: micro-batches, data and context ranks.

What is not trained holds NaN or an infinity in all of it; the comparison is with zeros there, on one rank, in
one micro-batch, in float64. Every case is a function of its seed, which a failure names.
"""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from cases import case
from layout_cases import CASES, SCORES
from layouts import Layout, OfTokens, by_threads, differences
from random_steps import random_step, reordered, scored_step
from row_losses import LOSSES, random_rows, random_scores

from strop.algo import distill, kl, kto, preference, process, reward_model, value
from strop.config.algo import Algo, Correction
from strop.config.algo_rules import BUILT_IN_ADVANTAGES, BUILT_IN_LOSSES
from strop.config.presets import PRESETS
from strop.config.teacher import Teacher

PROGRAM = Path(__file__).parent / "layout_program.py"
FEW = (
    "recipe grpo",
    "recipe gspo",
    "recipe ppo",
    "recipe dpo",
    "opd, full",
    "mis at level geometric, normalized",
)


def credit_of(section):
    """What decides the advantages."""
    priced = section.kl_type if section.kl_coef else None
    taught = section.teacher.form if section.is_taught else None
    shape = (section.normalize_std, section.whiten, section.mask_truncated, section.critic.bootstrap)
    return section.advantage, priced, taught, *shape


ADVANTAGES = {credit_of(each): name for name, each in CASES.items() if each.objective == "reward"}.values()
NO_LOSS = {"implied_rewards", "kl_values", "estimate_kl", "batch_kl", "reverse_kl_advantage", "distilled"}
"""Numbers of metrics and of credit; and the estimators, which `CASES` names by kind."""


def off(name, layout, seed):
    clean, poisoned = (OfTokens(random_step(CASES[name], seed, poison=poison)) for poison in (False, True))
    return differences(clean, by_threads(poisoned, layout))


def test_no_layout_changes_loss_or_gradient():
    assert {name: told for name in FEW if (told := off(name, Layout(2, 2, seed=3), 3))} == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in FEW])
def test_no_layout_changes_loss_or_gradient_of_any_algorithm(name):
    assert {seed: told for seed in range(4) if (told := off(name, Layout(seed + 1, 2, seed), seed))} == {}


def test_no_loss_of_rows_depends_on_the_rows_beside():
    for name in LOSSES:
        with case(name):
            rows = random_rows(name, 5)
            assert differences(rows, by_threads(rows, Layout(2, 1, 5))) == []


def test_no_loss_of_a_reward_model_depends_on_the_groups_beside():
    for name in SCORES:
        with case(name):
            scores = random_scores(name, 5)
            assert differences(scores, by_threads(scores, Layout(2, 1, 5))) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2])
def test_processes_that_hold_parts_of_an_update_agree_with_one(seed):
    folders = os.pathsep.join(map(str, (PROGRAM.parent, PROGRAM.parents[1])))
    done = subprocess.run(
        [sys.executable, PROGRAM, str(seed)],
        env={**os.environ, "PYTHONPATH": folders},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["off"] == []
    assert found["cases"] == 8 * (len(CASES) + len(LOSSES) + len(SCORES))


@pytest.mark.parametrize("name", ["recipe gspo", "rejection at level sequence"])
def test_a_rank_that_sums_its_own_tokens_only_is_found_out(name, monkeypatch):
    monkeypatch.setattr("layouts.Threads.sum_of", lambda self, rank: torch.clone)
    assert any(off(name, Layout(1, 2, seed), seed) for seed in range(4))


def test_advantages_do_not_depend_on_the_order_of_trajectories():
    for name in ADVANTAGES:
        with case(name):
            step, _ = scored_step(CASES[name], 4, poison=True)
            other, rows_N = reordered(step.batch, np.random.default_rng(4))
            step.algorithm.credit(step.batch)
            step.algorithm.credit(other)
            np.testing.assert_allclose(other.advantage, step.batch.advantage[rows_N], rtol=1e-6, atol=1e-6)


def test_every_recipe_and_every_choice_is_driven():
    sections = [*CASES.values(), *SCORES.values()]
    choices = {
        "advantage": BUILT_IN_ADVANTAGES,
        "policy_loss": BUILT_IN_LOSSES,
        **{
            name: get_args(Algo.model_fields[name].annotation)
            for name in ("objective", "aggregation", "whiten", "old", "kl_loss_type", "kl_type")
        },
    }
    for name, values in choices.items():
        assert set(values) <= {getattr(section, name) for section in sections}, name
    for part, model in (("correction", Correction), ("teacher", Teacher)):
        for name, spec in model.model_fields.items():
            driven = {getattr(getattr(section, part), name) for section in sections}
            assert {value for value in get_args(spec.annotation) if isinstance(value, str)} <= driven, name
    assert {f"recipe {name}" for name in PRESETS} <= {*CASES, *SCORES}


def test_every_function_that_is_a_loss_is_driven():
    driven = {name.split(",")[0] for name in LOSSES}
    for module in (preference, reward_model, kto, process, value, distill, kl):
        for name, fn in inspect.getmembers(module, inspect.isfunction):
            is_own = fn.__module__ == module.__name__ and not name.startswith("_")
            if is_own and "Tensor" in str(fn.__annotations__.get("return")) and name not in NO_LOSS:
                assert f"{module.__name__.rsplit('.', 1)[1]}.{name}" in driven
