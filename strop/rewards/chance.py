"""A reward without meaning, for trying everything around it."""

from dataclasses import dataclass

from strop.randomness import derive
from strop.sample import Sample


@dataclass(frozen=True)
class Chance:
    """0 or 1 by chance, from `seed` and the sample's prompt, group and index alone: for tests."""

    seed: int = 0

    def __call__(self, sample: Sample) -> float:
        """Of one finished sample."""
        return float(derive(self.seed, "reward", sample.prompt_id, sample.group_id, sample.index) & 1)
