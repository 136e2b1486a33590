"""Process rewards: a reward of yours splits a response into steps and scores each."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from strop.algo.step_worth import StepAggregate, aggregate_steps
from strop.sample import Scores, Steps


def split_steps(response: str, separator: str) -> list[str]:
    """What stands between separators; what is only white space is no step, and cannot be paid for.

    >>> split_steps("6 * 7\\n\\n\\n= 42\\n", "\\n")
    ['6 * 7', '= 42']
    """
    return [step for step in response.split(separator) if step.strip()]


def scores_of_steps(
    scores: Sequence[float],
    *,
    separator: str,
    worth: StepAggregate = "min",
    named: Mapping[str, float] = MappingProxyType({}),
) -> Scores:
    """Scores of the steps that `split_steps` finds, in order, and what they make the response worth.

    `worth`: the least of them, their product, the last or their sum; a policy that is paid the sum learns to
    write more steps. A response without a step is worth 0. With `algo.advantage = "steps"` or "turns" each
    step is credited by itself.

    >>> scores_of_steps([0.9, 0.8, 0.6], separator="\\n").value
    0.6
    """
    score_S = np.array(scores, np.float64)
    value = aggregate_steps(score_S, kind=worth) if len(score_S) else 0.0
    return Scores(value, dict(named), Steps(tuple(scores), separator))
