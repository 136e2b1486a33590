"""How long a sequence the local engine takes, and how many; torch is not needed to say so."""

from typing import NamedTuple

ROUNDING = 16
"""The cache's rows grow in steps of so many tokens, so that nearly equal requests share one shape."""


def longest_sequence(max_tokens: int, max_positions: int) -> int:
    """Tokens of a prompt and its response: a whole number of cache steps, or what the model takes."""
    return min(max_tokens // ROUNDING * ROUNDING, max_positions)


def rounded(tokens: int) -> int:
    """To whole steps of the cache."""
    return -(-tokens // ROUNDING) * ROUNDING


class Room(NamedTuple):
    """Rows of a cache, all of one capacity in tokens."""

    num: int
    capacity: int

    @property
    def tokens(self) -> int:
        return self.num * self.capacity

    def with_one(self, tokens: int) -> "Room":
        """One row more, which needs so many tokens."""
        return Room(self.num + 1, max(self.capacity, rounded(tokens)))
