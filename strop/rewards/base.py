"""The reward seam: what a sample is worth. Timeouts, retries and concurrency are around it, not in it."""

from typing import Protocol

from strop.errors import RewardFailed
from strop.sample import Sample, Scores


class Reward(Protocol):
    """A function of a finished sample. It may be `async def`, or a plain `def`, which runs in a thread.

    It returns a number; or `Scores`, whose named parts are recorded; or a table of scores, of which
    `reward.score_key` names the one to train on (entries that are not numbers are left out). With
    `reward.group = true` it takes all samples of a group and returns a list. A class is made once; if it has
    an `async def close(self)`, that is awaited when the run ends. Anything else, None included, is a failure:
    the call is repeated, then the sample fails. Failing is never a reward of 0.

    >>> def exact(sample):
    ...     return float(sample.response.strip() == str(sample.label))
    """

    async def __call__(self, sample: Sample) -> float | Scores: ...


class RewardRefused(RewardFailed):
    """A failure that another call would only repeat: it is not retried."""
