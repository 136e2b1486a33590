"""From what each held-out row of data came to, to an evaluation of them all."""

import math

import numpy as np

from strop.algo.given import Outcomes
from strop.eval.evaluate import Evaluation
from strop.eval.intervals import Interval, Z, wilson
from strop.sample import Group, Status

# R rows of data


def told(name: str, groups: list[Group], outcomes: Outcomes, figures: dict[str, float]) -> Evaluation:
    """As an evaluation; `figures` stand beside its mean."""
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
        response_tokens=float(np.mean([sample.response_length for sample in samples])),
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
