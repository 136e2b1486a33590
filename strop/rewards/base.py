"""The reward seam: what a sample is worth. Timeouts, retries and concurrency are around it, not in it."""

from typing import Protocol

from strop.sample import Sample, Scores


class Reward(Protocol):
    """A function of a finished sample. It may be `async def`, or a plain `def`, which runs in a thread.

    >>> def exact(sample):
    ...     return float(sample.response.strip() == str(sample.label))
    """

    async def __call__(self, sample: Sample) -> float | Scores: ...
