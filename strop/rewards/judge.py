"""`Judge`: what another language model, or the policy itself, thinks of a response."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from strop.config.variables import secret
from strop.errors import ConfigError
from strop.randomness import derive
from strop.rewards.asking import Asked, Asking, Question
from strop.rewards.base import RewardRefused
from strop.rewards.call import all_of
from strop.rewards.endpoint import Endpoint
from strop.rewards.hosted import Hosted
from strop.rewards.judge_parse import read_scores, read_verdict
from strop.rewards.judge_prompts import pair_question, scores_question
from strop.rewards.judge_votes import Tally, both_orders, share, tally
from strop.sample import Sample, Sampling, Scores

_LOW, _HIGH = 1, 10
_ENDS = ("</scores>", "</verdict>")
Vote = Sequence[float] | None
_NO_VOTES = Tally((0.5, 0.5), num_votes=0, num_failed=0)


@dataclass
class Judge:
    """What a language model thinks: it writes a critique, then a score, or which of two responses is better.

    `form = "scores"`: each response by itself, worth (mean score − 1) / 9 over `samples` judgings with scores
    of 1 to 10; also recorded are `judge_score`, the mean, and `judge_failed`, the share of judgings that
    could not be read. `form = "pairwise"`, with `reward.group = true`: every two responses of a group in both
    orders, a preference that does not survive the swap being a tie; worth the share of points, 1 for a win
    and ½ for a tie (`judge_ties`: the share of ties). What is shown of a response is fenced, so that it
    cannot pass for an answer. Where nothing can be read, more judgings are drawn, `reward.retries` times;
    then the sample fails.

    `model`: as the run's `model`, with a KV cache of `cache_tokens`; "policy": the model that is trained;
    with `url`, what the OpenAI-compatible server there calls it, `api_key_env` naming the variable of the
    environment that holds its key. `reward.timeout_s` is for one call of a server; models in this process
    have no deadline. `shows_label`: show it the label too, where there is one.
    """

    asking: Asking = field(repr=False)
    model: str
    url: str | None = None
    api_key_env: str | None = None
    form: Literal["scores", "pairwise"] = "scores"
    criteria: str = "Is it right, complete and to the point?"
    shows_label: bool = False
    samples: int = 1
    temperature: float = 0.6
    max_tokens: int = 512
    cache_tokens: int = 16384
    _asked: Asked = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._check()
        self._asked = self._open() if self.url is None else self._connect(self.url)

    async def __call__(self, judged: Sample | list[Sample]) -> Scores | list[Scores]:
        """Of one finished sample; with `form = "pairwise"`, of those of a group. Raises RewardFailed."""
        return await self._compared(judged) if isinstance(judged, list) else await self._scored(judged)

    async def close(self) -> None:
        """End the connections; a later call opens new ones."""
        await self._asked.close()

    def _check(self) -> None:
        if self.form not in ("scores", "pairwise"):
            raise ValueError(f'form = {self.form!r}: expected "scores" or "pairwise"')
        counts: tuple[object, ...] = self.samples, self.max_tokens, self.cache_tokens
        if not all(isinstance(count, int) and count >= 1 for count in counts):
            raise ValueError("samples, max_tokens and cache_tokens must be whole numbers of at least 1")
        if not 0 <= self.temperature < math.inf:
            raise ValueError(f"temperature = {self.temperature}: must be at least 0, and finite")
        if self.samples > 1 and self.temperature == 0:
            raise ValueError(
                f"samples = {self.samples} with temperature = 0 would all be alike; remove one of them"
            )
        if self.api_key_env is not None and self.url is None:
            raise ValueError("api_key_env is for a server; give its url, or remove it")

    def _open(self) -> Asked:
        sampling = Sampling(max_tokens=self.max_tokens, temperature=self.temperature, stop=_ENDS)
        try:
            hosted = Hosted(self.model, sampling, cache_tokens=self.cache_tokens)
        except ConfigError as wrong:
            raise ConfigError(f"the judge's {wrong}") from wrong
        self.asking.admit(hosted)
        return hosted

    def _connect(self, url: str) -> Asked:
        key = None if self.api_key_env is None else secret(self.api_key_env)
        return Endpoint(url, self.model, self.temperature, self.max_tokens, self.asking, key)

    async def _scored(self, sample: Sample) -> Scores:
        text = scores_question(
            sample, criteria=self.criteria, nonce=self._nonce(sample), shows_label=self.shows_label
        )
        votes = await self._votes(text, (sample,), partial(read_scores, num=1, low=_LOW, high=_HIGH))
        told = tally(votes, num=1)
        if not told.num_votes:
            raise RewardRefused(self._unread(told.num_failed))
        mean = told.sums[0] / told.num_votes
        failed = told.num_failed / len(votes)
        return Scores((mean - _LOW) / (_HIGH - _LOW), {"judge_score": mean, "judge_failed": failed})

    async def _compared(self, samples: list[Sample]) -> list[Scores]:
        if len(samples) < 2:
            raise RewardRefused(
                f"judge {self.model}: 1 response, and nothing to compare it with; raise samples_per_prompt, "
                "or give a held-out set a reward of its own"
            )
        pairs = list(itertools.combinations(range(len(samples)), 2))
        told = await all_of(self._pair(samples[one], samples[other]) for one, other in pairs)
        if not any(each.num_votes for each in told) and any(each.num_failed for each in told):
            raise RewardRefused(self._unread(sum(each.num_failed for each in told)))
        return [
            _points(
                [(each, pair.index(member)) for each, pair in zip(told, pairs, strict=True) if member in pair]
            )
            for member in range(len(samples))
        ]

    async def _pair(self, one: Sample, other: Sample) -> Tally:
        """Equal texts are a tie that nobody need be asked for."""
        if one.response == other.response:
            return _NO_VOTES
        shown, swapped = await all_of(self._preferred(*pair) for pair in ((one, other), (other, one)))
        return both_orders(shown, swapped)

    async def _preferred(self, first: Sample, second: Sample) -> Tally:
        text = pair_question(
            first,
            second,
            criteria=self.criteria,
            nonce=self._nonce(first),
            shows_label=self.shows_label,
        )
        votes = await self._votes(text, (first, second), lambda said: share(read_verdict(said)))
        return tally(votes, num=2)

    async def _votes(self, text: str, of: Sequence[Sample], read: Callable[[str], Vote]) -> Sequence[Vote]:
        """`samples` judgings, and as many again, up to `reward.retries` times, while none can be read."""
        votes: list[Vote] = []
        for attempt in range(1 + self.asking.retries * (self.temperature > 0)):
            numbers = range(attempt * self.samples, (attempt + 1) * self.samples)
            said = await all_of(
                self._asked.ask(Question(text, self._noise("judge", *of, number=number)))
                for number in numbers
            )
            votes += [read(each) for each in said]
            if any(vote is not None for vote in votes):
                break
        return votes

    def _noise(self, purpose: str, *of: Sample, number: int) -> int:
        """Groups and samples count over the whole run; two held-out sets differ by their prompts."""
        indices = [sample.index for sample in of]
        return derive(self.asking.seed, purpose, of[0].prompt_id, of[0].group_id, *indices, number)

    def _nonce(self, sample: Sample) -> str:
        """One for a group, whose questions then begin alike and are computed together."""
        seed = self.asking.seed
        return f"{derive(seed, 'judge fence', sample.prompt_id, sample.group_id):016x}"

    def _unread(self, num: int) -> str:
        return (
            f"judge {self.model}: none of {num} judgings could be read; a larger max_tokens or a more able "
            "model may keep to the form that it is asked for"
        )


def _points(told: Sequence[tuple[Tally, int]]) -> Scores:
    """Of one response: its pairs, and its place in each."""
    wins = [0.5 if pair.winner is None else float(pair.winner == place) for pair, place in told]
    failed = sum(pair.num_failed for pair, _ in told)
    judgings = failed + sum(pair.num_votes for pair, _ in told)
    ties = sum(pair.winner is None for pair, _ in told)
    return Scores(
        sum(wins) / len(wins),
        {"judge_ties": ties / len(told), "judge_failed": failed / judgings if judgings else 0.0},
    )
