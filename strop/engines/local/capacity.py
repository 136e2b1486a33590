"""How long a sequence the local engine takes, and how many; torch is not needed to say so."""

from typing import NamedTuple

ROUNDING = 16
"""The cache grows in steps of so many tokens, so that nearly equal requests share one shape."""
BLOCK_TOKENS = ROUNDING
"""Tokens of a block of what a sequence adds to its prompt."""


def longest_sequence(max_tokens: int, max_positions: int) -> int:
    """Tokens of a prompt and its response: a whole number of cache steps, or what the model takes."""
    return min(max_tokens // ROUNDING * ROUNDING, max_positions)


def rounded(tokens: int) -> int:
    """To whole steps of the cache."""
    return -(-tokens // ROUNDING) * ROUNDING


class Room(NamedTuple):
    """Slots of prefixes, all of one capacity in tokens, and the blocks behind them."""

    num: int
    capacity: int
    own: int = 0
    """Tokens in whole blocks that all sequences may come to."""

    @property
    def tokens(self) -> int:
        return self.num * self.capacity + self.own

    def with_prefix(self, tokens: int) -> "Room":
        """One prefix more, of so many tokens."""
        return self._replace(num=self.num + 1, capacity=max(self.capacity, rounded(tokens)))

    def with_own(self, tokens: int) -> "Room":
        """One sequence more, which may add so many tokens."""
        return self._replace(own=self.own + rounded(tokens))
