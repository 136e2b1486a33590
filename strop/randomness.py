"""Random numbers as pure functions of where they are used: (run seed, purpose, step, group, index).

Nothing here has state, so a resumed run, another batch size or another order draws the same numbers.
"""

import hashlib
import random

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def derive(seed: int, *path: str | int) -> int:
    """A 64-bit seed for one purpose, e.g. `derive(run_seed, "sample", step, group, index)`."""
    text = "/".join([str(seed), *(f"{type(part).__name__}:{part}" for part in path)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def generator(seed: int, *path: str | int) -> random.Random:
    """A `random.Random` of its own for one purpose; the global state is never touched."""
    return random.Random(derive(seed, *path))


def uniforms(seeds: NDArray[np.uint64], positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """One number in [0, 1) per (seed, position), by SplitMix64 (Steele, Lea, Flood 2014) as a counter hash.

    The noise of a token is a function of its sample's seed and its position alone: it does not depend on
    which other sequences share the batch.
    """
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is the point
        state = seeds + (positions.astype(np.uint64) + np.uint64(1)) * _GOLDEN
        state = (state ^ (state >> np.uint64(30))) * _MIX_1
        state = (state ^ (state >> np.uint64(27))) * _MIX_2
        state = state ^ (state >> np.uint64(31))
    unit: NDArray[np.float64] = (state >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return unit
