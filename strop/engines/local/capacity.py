"""How long a sequence the local engine takes; torch is not needed to say so."""

ROUNDING = 32
"""The cache's rows grow in steps of so many tokens, so that nearly equal requests share one shape."""


def longest_sequence(max_tokens: int, max_positions: int) -> int:
    """Tokens of a prompt and its response: a whole number of cache steps, or what the model takes."""
    return min(max_tokens // ROUNDING * ROUNDING, max_positions)
