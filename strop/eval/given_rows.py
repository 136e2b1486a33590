"""The loss, and what it says, on held-out rows: nothing is drawn, nothing is trained."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from strop.algo.base import LOG_PROBS
from strop.algo.batch import make_batch
from strop.algo.given import Outcomes, whole_loss
from strop.algo.open import Given
from strop.eval.evaluate import Evaluation
from strop.eval.intervals import Interval, Z, wilson
from strop.offline.rows import RowReader
from strop.offline.source import groups_of
from strop.sample import Group, Prompt, Sample, Status
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
    return _evaluation(name, groups, algorithm.outcomes(batch), _shown(figures))


def _shown(figures: Mapping[str, float]) -> dict[str, float]:
    """What a score can tell: it has no entropy; the perplexity is that of texts."""
    known = {name: value for name, value in figures.items() if name != "entropy"}
    if set(known) == {"loss", "nll"}:
        known["perplexity"] = math.exp(min(known["nll"], 700.0))
    return known


def _evaluation(name: str, groups: list[Group], outcomes: Outcomes, figures: dict[str, float]) -> Evaluation:
    samples = [sample for group in groups for sample in group.samples if not sample.remove_sample]
    mean, stderr = _mean(outcomes)
    return Evaluation(
        name=name,
        groups=groups,
        mean=mean,
        stderr=stderr,
        interval=_interval(outcomes, mean, stderr),
        n=len(groups),
        samples=len(samples),
        failed=0,
        pass_at={},
        left_out={},
        truncated_share=sum(sample.status is Status.TRUNCATED for sample in samples) / len(samples),
        response_tokens=_mean_length(samples),
        figures=figures,
    )


def _mean(outcomes: Outcomes) -> tuple[float, float]:
    """The weighted mean, and its standard error over rows: that of a ratio of two sums over independent draws
    (Cochran, Sampling Techniques, 1977, eq. 2.46), of equal weights the usual one; NaN for one row."""
    value_R, weight_R = outcomes.value_R, outcomes.weight_R
    mean = float((weight_R * value_R).sum() / weight_R.sum())
    if len(value_R) < 2:
        return mean, math.nan
    residual_R = weight_R * (value_R - mean) / weight_R.mean()
    return mean, float(residual_R.std(ddof=1) / math.sqrt(len(value_R)))


def _interval(outcomes: Outcomes, mean: float, stderr: float) -> Interval | None:
    if set(outcomes.value_R.tolist()) <= {0.0, 1.0} and (outcomes.weight_R == 1).all():
        return wilson(passed=int(outcomes.value_R.sum()), n=len(outcomes.value_R))
    return None if math.isnan(stderr) else Interval(mean - Z * stderr, mean + Z * stderr, "normal")


def _mean_length(samples: Sequence[Sample]) -> float:
    return float(np.mean([sample.response_length for sample in samples]))
