"""A filter of groups as slime's users write it."""

from slime.rollout.filter_hub.base_types import DynamicFilterOutput


def some_reward(args, samples, **kwargs):
    """Groups in which nobody wrote a digit are drawn anew, unless there is nothing else."""
    if any(sample.get_reward_value(args) > 0 for sample in samples):
        return DynamicFilterOutput(keep=True)
    return DynamicFilterOutput(keep=False, reason="no_digit", keep_when_insufficient=True)
