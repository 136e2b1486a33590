"""From what several judgings said to who won: sums of scores, both orders, ties; and what judging earns."""

from collections.abc import Sequence
from dataclasses import dataclass

from strop.rewards.judge_parse import Verdict

_SHARES: dict[Verdict, tuple[float, float]] = {"A": (1.0, 0.0), "B": (0.0, 1.0), "tie": (0.5, 0.5)}


@dataclass(frozen=True, slots=True)
class Tally:
    """Of several judgings of the same candidates in the same order."""

    sums: tuple[float, ...]
    """One a candidate."""
    num_votes: int
    num_failed: int
    """Judgings that could not be read; they have no vote."""

    @property
    def winner(self) -> int | None:
        """The candidate of the strictly highest sum; None for a tie, also when nothing could be read."""
        best = max(self.sums)
        return self.sums.index(best) if self.sums.count(best) == 1 else None


def tally(votes: Sequence[Sequence[float] | None], *, num: int) -> Tally:
    """Add the scores of `num` candidates up (arXiv:2504.02495 §4); None is a judging that failed to parse.

    >>> tally([(7, 4), (5, 6), None, (8, 6)], num=2)
    Tally(sums=(20.0, 16.0), num_votes=3, num_failed=1)
    """
    read = [vote for vote in votes if vote is not None]
    sums = tuple(float(sum(vote[candidate] for vote in read)) for candidate in range(num))
    return Tally(sums, num_votes=len(read), num_failed=len(votes) - len(read))


def share(verdict: Verdict | None) -> tuple[float, float] | None:
    """A verdict as a vote: 1 for the winner, ½ for each in a tie."""
    return None if verdict is None else _SHARES[verdict]


def both_orders(shown: Tally, swapped: Tally) -> Tally:
    """Two candidates judged as A, B and again as B, A: the sums of each, in the order of `shown`.

    Where the orders name different winners, or one of them could not be read, it is a tie, each with half of
    all: what a judge prefers by place says nothing of the candidates.
    """
    sums = (shown.sums[0] + swapped.sums[1], shown.sums[1] + swapped.sums[0])
    winners = {shown.winner, None if swapped.winner is None else 1 - swapped.winner} - {None}
    if len(winners) == 2 or not (shown.num_votes and swapped.num_votes):
        sums = (sum(sums) / 2, sum(sums) / 2)
    return Tally(sums, shown.num_votes + swapped.num_votes, shown.num_failed + swapped.num_failed)


def judging_reward(scores: Sequence[float] | None, *, label: int) -> float:
    """What a judging is worth to a judge that is trained (arXiv:2504.02495 §3.2): 1 or −1.

    Of several candidates, 1 if candidate `label` has strictly the highest score; of one, if the score is
    `label`, 0 or 1. A judging that could not be read is worth −1.
    """
    if scores is None:
        return -1.0
    if len(scores) == 1:
        return 1.0 if scores[0] == label else -1.0
    rivals = [score for candidate, score in enumerate(scores) if candidate != label]
    return 1.0 if scores[label] > max(rivals) else -1.0
