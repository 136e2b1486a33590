"""The price of long responses: DAPO's soft overlong punishment, weighed beside that of an answer."""

from dataclasses import dataclass

import numpy as np

from strop.algo.overlong import soft_overlong_punishment
from strop.sample import Sample


@dataclass(frozen=True, slots=True)
class Overlong:
    """0 up to `limit` − `cache` response tokens, −1 from `limit` on, linear between.

    Source: arXiv:2503.14476 eq. 13. It stands beside the answer's: `reward.weights = { dapo = 1.0,
    overlong = 1.0 }` with `reward.options.overlong = { limit = 20480, cache = 4096 }`. With
    `algo.mask_truncated` the longest would not be trained at all: one of the two.

    >>> Overlong(limit=20, cache=4)(Sample(index=0, group_id=0))
    0.0
    """

    limit: int
    cache: int

    def __post_init__(self) -> None:
        if not 0 < self.cache <= self.limit:
            raise ValueError(f"cache = {self.cache} is not in 1 to limit = {self.limit}")

    def __call__(self, sample: Sample) -> float:
        """Of one finished sample."""
        length = np.array([sample.response_length])
        return float(soft_overlong_punishment(length, limit=self.limit, cache=self.cache)[0])
