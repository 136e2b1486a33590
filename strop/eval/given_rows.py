"""The loss, and what it says, on held-out rows: nothing is drawn, nothing is trained."""

import math
from collections.abc import Mapping, Sequence

from strop.algo.base import LOG_PROBS
from strop.algo.batch import make_batch
from strop.algo.given import whole_loss
from strop.algo.open import Given
from strop.eval.evaluate import Evaluation
from strop.eval.given_outcomes import told
from strop.offline.rows import RowReader
from strop.offline.source import groups_of
from strop.sample import Prompt
from strop.train.base import Trainer


async def evaluate_rows(
    trainer: Trainer, algorithm: Given, name: str, rows: Sequence[Prompt], reader: RowReader
) -> Evaluation:
    """Its `mean` is what grows with learning: the share of pairs, or of marks, that the policy is right
    about; of texts the mean log-prob of a token. Its `figures` have the loss, and parts of it by the names
    that they have in training. Each sample's reward is what the policy says that it is worth."""
    groups = groups_of(rows, reader)
    batch = make_batch(groups, num_updates=1, max_response_tokens=1, temperature=1.0)
    for what in [each for each in LOG_PROBS if each == "old" or each in algorithm.needs]:
        batch.scored[what] = await trainer.score(batch, what)
    algorithm.credit(batch)
    loss = whole_loss(algorithm, batch)
    for sample, worth in zip(batch.samples, algorithm.worth(batch), strict=True):
        sample.reward = float(worth)
    figures = {"loss": float(loss.total), **{part: float(value) for part, value in loss.parts.items()}}
    return told(name, groups, algorithm.outcomes(batch), _shown(figures))


def _shown(figures: Mapping[str, float]) -> dict[str, float]:
    """What a score can tell: it has no entropy; the perplexity is that of texts."""
    known = {name: value for name, value in figures.items() if name != "entropy"}
    if set(known) == {"loss", "nll"}:
        known["perplexity"] = math.exp(min(known["nll"], 700.0))
    return known
