"""Rewards that are rules: a response is compared with a label or a pattern, and is worth 0 or 1.

A sample without a label fails (it is not worth 0): a reward that cannot be known is no reward. Model output
is only ever searched, never evaluated.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from strop.rewards.numbers import NUMBER, number_of, read_number
from strop.sample import Prompt, Sample

_MAX_SEARCHED = 20_000


def exact(sample: Sample) -> float:
    """1 if the response is the label, white space around both aside.

    >>> exact(Sample(index=0, group_id=0, response=" 42\\n", label=42))
    1.0
    >>> exact(Sample(index=0, group_id=0, response="42.", label=42))
    0.0
    """
    return float(sample.response.strip() == str(_label(sample)).strip())


def none(sample: Sample) -> float:  # noqa: ARG001 - of any sample
    """0 for every sample: for runs that learn from a teacher alone.

    >>> none(Sample(index=0, group_id=0, response="42"))
    0.0
    """
    return 0.0


def first_number(sample: Sample) -> float:
    """1 if the first number in the response equals the label as a number.

    Commas may group thousands; a minus sign counts; exponents and fractions are not read.

    >>> first_number(Sample(index=0, group_id=0, response="It is 1,234.0 (not 7).", label="1234"))
    1.0
    >>> first_number(Sample(index=0, group_id=0, response="-3", label=3))
    0.0
    >>> first_number(Sample(index=0, group_id=0, response="no idea", label=3))
    0.0
    """
    expected = number_of(_label(sample))
    found = NUMBER.search(sample.response[:_MAX_SEARCHED])
    return float(found is not None and read_number(found.group()) == expected)


@dataclass(frozen=True)
class Regex:
    """1 if `pattern` is found in the response and what it captured is the label.

    `group` (number or name) is what is compared with the label, white space aside; by default the first
    group, or the whole match when there are no groups. With `label = false`, finding it is enough. Only the
    last 20,000 characters are searched. A pattern that backtracks without end is cut off by
    `reward.timeout_s`, but its thread goes on until it is done: do not nest repetitions.

    >>> answer = Regex(pattern=r"answer: (\\w+)")
    >>> answer(Sample(index=0, group_id=0, response="So the answer: blue", label="blue"))
    1.0
    >>> Regex(pattern="^Sure", label=False)(Sample(index=0, group_id=0, response="Sure, …"))
    1.0
    """

    pattern: str
    group: int | str | None = None
    label: bool = True
    compiled: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compiled", re.compile(self.pattern))
        known = {*range(self.compiled.groups + 1), *self.compiled.groupindex}
        if self.group is not None and self.group not in known:
            raise ValueError(f"pattern {self.pattern!r} has no group {self.group!r}")

    def __call__(self, sample: Sample) -> float:
        """Of one finished sample."""
        found = self.compiled.search(sample.response[-_MAX_SEARCHED:])
        if not self.label:
            return float(found is not None)
        expected = str(_label(sample)).strip()
        group = self.group if self.group is not None else min(self.compiled.groups, 1)
        return float(found is not None and (found.group(group) or "").strip() == expected)


@dataclass(frozen=True)
class Format:
    """`share` if the whole response, white space around it aside, has the form `pattern`, else 0.

    `.` matches line ends too. A response of more than 20,000 characters does not have the form. What is said
    of `Regex` about patterns that backtrack holds here too.

    >>> Format(pattern="<think>.*</think>.*", share=0.2)(
    ...     Sample(index=0, group_id=0, response="<think>\\n…\\n</think> 4"))
    0.2
    """

    pattern: str
    share: float = 1.0
    compiled: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compiled", re.compile(self.pattern, re.DOTALL))

    def __call__(self, sample: Sample) -> float:
        """Of one finished sample."""
        text = sample.response.strip()
        return self.share if len(text) <= _MAX_SEARCHED and self.compiled.fullmatch(text) else 0.0


def _label(sample: Sample) -> Any:
    if sample.label is None:
        raise ValueError(f"prompt {sample.prompt_id!r} has no label to compare with")
    return sample.label


def check_any(prompt: Prompt) -> None:
    """Raises ValueError unless there is a label."""
    if prompt.label is None:
        raise ValueError("it has no label")


def check_number(prompt: Prompt) -> None:
    """Raises ValueError unless the label is a number."""
    number_of(prompt.label)
