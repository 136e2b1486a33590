"""Find the digit, and say nothing else: what people demonstrate, what they prefer, and what is really wanted.

`true_score` is what is really wanted. Only people know it: their comparisons follow it, and the held-out
prompts are scored by it. No stage is trained on it. Run this file to write the rows of the first two stages
anew.
"""

import hashlib
import json
import random
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from strop import Sample

Row = dict[str, Any]

HERE = Path(__file__).parent
STYLES = {"it is {}": 0.55, "{}, or so": 0.25, "{}": 0.2}
"""How people answer, and how often."""
WRONG = {"demonstrations": 0.2, "comparisons": 0.5}
"""Share of answers whose digit is any: of those that people write, and of those that they are shown."""
MISTAKEN = 0.05
"""Share of the comparisons that people get the wrong way round."""
NUM_ROWS = {
    "demonstrations": {"train": 1024, "held_out": 128},
    "comparisons": {"train": 2048, "held_out": 128},
}


def find_digit(rng: random.Random, *, split: str) -> Row:
    """Two lowercase letters and a digit, in any order, such as `b4k`; the answer is the digit.

    `split` is "train" or "held_out". The text itself decides which of the two it belongs to: about one in
    five is held out, from every stage.
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


def worth(response: str, digit: str) -> float:
    """1 for the digit alone, 0.5 for the digit in as few words as people use, 0 for anything else."""
    if response == digit:
        return 1.0
    return 0.5 * (response in [style.format(digit) for style in STYLES])


def true_score(sample: Sample) -> float:
    """What the reply is worth, for held-out prompts."""
    return worth(sample.response, str(sample.label))


def demonstration(rng: random.Random, *, split: str) -> Row:
    """A prompt and what somebody answered."""
    task = find_digit(rng, split=split)
    return {"prompt": task["prompt"], "completion": _answer(rng, task["label"], WRONG["demonstrations"])}


def comparison(rng: random.Random, *, split: str) -> Row:
    """A prompt, and two answers of which somebody preferred one. Held-out ones are without mistakes."""
    task = find_digit(rng, split=split)
    digit, wrong = task["label"], WRONG["comparisons"]
    worse = better = digit
    while worth(worse, digit) == worth(better, digit):
        shown = [_answer(rng, digit, wrong) for _ in range(2)]
        worse, better = sorted(shown, key=lambda answer: worth(answer, digit))
    if split == "train" and rng.random() < MISTAKEN:
        worse, better = better, worse
    return {"prompt": task["prompt"], "chosen": better, "rejected": worse}


def _answer(rng: random.Random, digit: str, wrong: float) -> str:
    (style,) = rng.choices(list(STYLES), weights=list(STYLES.values()))
    return style.format(rng.choice(string.digits) if rng.random() < wrong else digit)


def files() -> Iterator[tuple[str, str]]:
    """Names and texts of the files of rows, the same on every machine."""
    kinds: dict[str, Callable[..., Row]] = {"demonstrations": demonstration, "comparisons": comparison}
    for name, make in kinds.items():
        for split, count in NUM_ROWS[name].items():
            rng = random.Random(f"{name} {split}")
            rows = [json.dumps(make(rng, split=split)) for _ in range(count)]
            yield f"{name}_{split}.jsonl", "".join(f"{row}\n" for row in rows)


if __name__ == "__main__":
    for name, text in files():
        (HERE / name).write_text(text)
