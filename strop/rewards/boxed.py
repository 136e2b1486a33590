r"""Rewards of mathematical answers in `\boxed{…}`, and the reduction of a response to what its box holds."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from strop.rewards.equality import Equality, label_text
from strop.rewards.latex import last_boxed
from strop.rewards.workers import Workers
from strop.sample import Sample, Scores

_END_OF_THOUGHT = re.compile(r"</think>|###Response")


@dataclass(frozen=True)
class Math:
    r"""1 if the last `\boxed{…}` of the response equals the label as mathematics, by math-verify.

    Needs strop[math]. Without a box it is 0. With `reduced`, an answer that is not worked out is wrong: 2/4
    for 1/2, 2 + 2 for 4. Comparing takes place in worker processes that may use four seconds of processor
    time and 1 GiB an answer: one that needs more is worth 0 and counted in the score `math_timeout`, as it
    is the model's doing; a process that ends otherwise is a failure, and the answer is tried again.
    """

    workers: Workers = field(repr=False)
    reduced: bool = True

    async def __call__(self, sample: Sample) -> Scores:
        """Of one finished sample."""
        return await _worth(sample.response, sample, Equality(self.workers, self.reduced))


@dataclass(frozen=True)
class DeepScaler:
    r"""As `math`, of what follows the chain of thought: without `</think>` or `###Response` it is 0.

    Needs strop[math].
    """

    workers: Workers = field(repr=False)

    async def __call__(self, sample: Sample) -> Scores:
        """Of one finished sample."""
        *_, answer = thought = _END_OF_THOUGHT.split(sample.response)
        return await _worth(answer if len(thought) > 1 else "", sample, Equality(self.workers, True))


@dataclass(frozen=True)
class Boxed:
    r"""Another reward, of what the last `\boxed{…}` of the response holds; without a box, of nothing."""

    fn: Callable[[Sample], Any]

    def __call__(self, sample: Sample) -> Any:
        """Of one finished sample; a coroutine if `fn` gives one."""
        return self.fn(replace(sample, response=last_boxed(sample.response) or ""))


async def _worth(response: str, sample: Sample, equality: Equality) -> Scores:
    if sample.label is None:
        raise ValueError(f"prompt {sample.prompt_id!r} has no label to compare with")
    label, answer = label_text(sample.label), last_boxed(response)
    if answer is None:
        return Scores(0.0, {"math_timeout": 0.0})
    verdict = await equality(answer, label)
    return Scores(float(verdict.is_equal), {"math_timeout": float(verdict.timed_out)})
