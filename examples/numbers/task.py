"""Which of three numbers is the largest? Training and held-out tasks are disjoint by construction."""

import hashlib
import random
from typing import Any


def largest_number(rng: random.Random, *, split: str) -> dict[str, Any]:
    """Three different numbers from 10 to 99, in any order; `split` is "train" or "held_out".

    The numbers themselves, whatever their order, decide which split they belong to: about one set in five is
    held out. Sets of the other split are drawn again.
    """
    if split not in ("train", "held_out"):
        raise ValueError(f"split must be 'train' or 'held_out', got {split!r}")
    while True:
        numbers = rng.sample(range(10, 100), 3)
        if is_held_out(numbers) == (split == "held_out"):
            break
    a, b, c = numbers
    return {
        "prompt": f"Which is the largest number: {a}, {b} or {c}? Answer with just the number.",
        "label": max(numbers),
    }


def is_held_out(numbers: list[int]) -> bool:
    """Whether this set of numbers is kept for evaluation: the same on every machine and in every run."""
    return hashlib.sha256(repr(sorted(numbers)).encode()).digest()[0] % 5 == 0
