"""A reward model on held-out rows: how often its scores say what the rows say, also by subset (as in
RewardBench, arXiv:2403.13787)."""

from collections.abc import Sequence

import numpy as np

from strop.algo.batch import make_batch
from strop.algo.given import Outcomes
from strop.algo.scoring import Objective
from strop.eval.evaluate import Evaluation
from strop.eval.given_outcomes import told
from strop.offline.rows import RowReader
from strop.offline.source import groups_of
from strop.sample import Group, Prompt
from strop.train.base import Trainer

SUBSET = "subset"
"""Field of a row's metadata."""


async def evaluate_scores(
    trainer: Trainer, objective: Objective, name: str, rows: Sequence[Prompt], reader: RowReader
) -> Evaluation:
    """Its `mean` is the share of pairs, or of the pairs of a list, that are scored in their order; of marks,
    less the mean squared error. Each sample's reward is its score. Where rows name a `subset`, `figures` have
    the mean of each."""
    groups = groups_of(rows, reader)
    batch = make_batch(groups, num_updates=1, max_response_tokens=1, temperature=1.0)
    score_N = await trainer.score(batch, "scores")
    score_S = score_N[batch.offsets[:-1]].astype(np.float64)
    for sample, score in zip(batch.samples, score_S, strict=True):
        sample.reward = float(score)
    right = [
        objective.is_right(group.samples, np.array([sample.reward for sample in group.samples]))
        for group in groups
    ]
    outcomes = Outcomes(np.array(right), np.ones(len(right)))
    return told(name, groups, outcomes, by_subset(groups, right))


def by_subset(groups: Sequence[Group], right: Sequence[float]) -> dict[str, float]:
    """`subset/NAME` → the mean of its rows."""
    parts: dict[str, list[float]] = {}
    for group, value in zip(groups, right, strict=True):
        if SUBSET in group.prompt.metadata:
            parts.setdefault(str(group.prompt.metadata[SUBSET]), []).append(value)
    return {f"subset/{name}": float(np.mean(values)) for name, values in sorted(parts.items())}
