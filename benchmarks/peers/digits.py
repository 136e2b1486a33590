"""The reward of both sides of `grpo_vs_trl`: cheap, and seldom equal for two samples of a group."""

from typing import Any


def share_of_digits(text: str) -> float:
    """Among the characters of a text; 0 for the empty one.

    >>> share_of_digits("4 + 4 = 8 ")
    0.3
    """
    return sum(map(str.isdigit, text)) / max(1, len(text))


def of_sample(sample: Any) -> float:
    """As strop calls it."""
    return share_of_digits(sample.response)


def of_completions(completions: list[list[dict[str, str]]]) -> list[float]:
    """As TRL hands them: each a list of one message."""
    return [share_of_digits(messages[0]["content"]) for messages in completions]
