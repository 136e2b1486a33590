"""Find the digit: small enough for a model that knows nothing to learn in a minute or two."""

import hashlib
import random
import string
from typing import Any

from strop import Sample


def find_digit(rng: random.Random, *, split: str) -> dict[str, Any]:
    """Two lowercase letters and a digit, in any order, such as `b4k`; the answer is the digit.

    `split` is "train" or "held_out". The text itself decides which of the two it belongs to, about one in
    five is held out, and texts of the other split are drawn again: the splits are disjoint by construction.
    """
    if split not in ("train", "held_out"):
        raise ValueError(f"split must be 'train' or 'held_out', got {split!r}")
    while True:
        digit = rng.choice(string.digits)
        characters = [digit, *rng.choices(string.ascii_lowercase, k=2)]
        rng.shuffle(characters)
        text = "".join(characters)
        if is_held_out(text) == (split == "held_out"):
            return {"prompt": text, "label": digit}


def is_held_out(text: str) -> bool:
    """Whether this text is kept for evaluation: the same on every machine and in every run."""
    return hashlib.sha256(text.encode()).digest()[0] % 5 == 0


def digit_reward(sample: Sample) -> float:
    """1 when the reply opens with the right digit, 0.1 when with any: a first foothold for a blank model."""
    opening = sample.response[:1]
    return 1.0 if opening == sample.label else 0.1 * opening.isdigit()
