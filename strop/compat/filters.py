"""slime's filters of groups: their result, and its own two."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from strop.compat.sample import Sample
from strop.sample import all_equal


@dataclass
class DynamicFilterOutput:
    """Whether to train a group, why not, and whether to train it all the same when a step stays short."""

    keep: bool
    reason: str | None = None
    keep_when_insufficient: bool = False


def check_reward_nonzero_std(args: Any, samples: list[Sample], **_: Any) -> DynamicFilterOutput:
    """Rewards must differ; equal ones give no gradient."""
    rewards = [sample.get_reward_value(args) for sample in samples]
    if all_equal(np.asarray(rewards, np.float64)):
        return DynamicFilterOutput(keep=False, reason=f"zero_std_{round(rewards[0], 1)}")
    return DynamicFilterOutput(keep=True)


def check_reward_nonzero_std_with_fallback(args: Any, samples: list[Sample], **_: Any) -> DynamicFilterOutput:
    """The same, but equal rewards may fill a step that stays short."""
    found = check_reward_nonzero_std(args, samples)
    return DynamicFilterOutput(found.keep, found.reason, keep_when_insufficient=True)
