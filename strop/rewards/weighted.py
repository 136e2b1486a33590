"""Several rewards as one: a weighted sum, with each of them recorded by its name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strop.rewards.base import RewardRefused
from strop.rewards.call import all_of
from strop.rewards.select import Scoring
from strop.sample import Sample, Scores


@dataclass(frozen=True)
class Weighted:
    """The rewards of `reward.weights`, each with its own deadline, retries and places."""

    parts: Mapping[str, Scoring]
    """By the name under which each is recorded."""
    weights: Mapping[str, float]

    async def score(self, sample: Sample) -> Scores:
        """The weighted sum; fails when one of them does."""
        scored = await all_of(scorer.score(sample) for scorer in self.parts.values())
        return self._sum(scored)

    async def score_group(self, samples: Sequence[Sample]) -> list[Scores]:
        """The same of each sample of a group; rewards of groups are called once."""
        scored = await all_of(scorer.score_group(samples) for scorer in self.parts.values())
        return [self._sum(of_sample) for of_sample in zip(*scored, strict=True)]

    def _sum(self, scored: Sequence[Scores]) -> Scores:
        if any(scores.steps is not None for scores in scored):
            raise RewardRefused(
                "reward.weights: one of them returned scores of steps, which cannot be added to what whole "
                "responses are worth; name it in reward.fn, or let it return the value alone"
            )
        by_name = dict(zip(self.parts, scored, strict=True))
        named = {
            f"{name}/{part}": value
            for name, scores in by_name.items()
            for part, value in scores.named.items()
        }
        return Scores(
            sum(self.weights[name] * scores.value for name, scores in by_name.items()),
            {**{name: scores.value for name, scores in by_name.items()}, **named},
        )
