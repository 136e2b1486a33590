"""Multiple choice, as in GPQA (arXiv:2311.12022): the letter that a response settles on."""

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strop.rewards.latex import last_boxed
from strop.sample import Prompt, Sample

_NAMED = (
    re.compile(
        r"\b(?:answer|option|choice)\b\W*(?:\bis\b|:|=)?\W*(?:\b(?:option|choice)\b\W*)?\b([a-z])\b", re.I
    ),
    re.compile(r"\b([a-z])\b\W*\bis\s+(?:the\s+)?(?:correct|right)\b", re.I),
)
_LETTER = re.compile(r"(?<![A-Za-z'’])([A-Z])(?![A-Za-z'’])")
_WORDS = re.compile(r"[^a-z0-9]+")
_MOST_CHOICES = 8


@dataclass(frozen=True)
class Question:
    """What is known of the choices of one prompt."""

    letters: Sequence[str]
    """That may be answered."""
    correct: str | None
    texts: tuple[str, ...]
    """Of the right choice; one of them in the response is right when the response names no letter."""

    @classmethod
    def of(cls, label: object, metadata: Mapping[str, Any]) -> "Question":
        """`metadata`: `choices` (a list, or a table by letter), `valid_letters`, `correct_letter`, which wins
        over the label: a letter, the index of a choice, or its text. Raises ValueError."""
        choices = _choices(metadata.get("choices") or [])
        valid = metadata.get("valid_letters") or list(string.ascii_uppercase[: len(choices) or _MOST_CHOICES])
        letters = [str(letter).upper() for letter in valid]
        correct = _correct(label, metadata.get("correct_letter"), letters, choices)
        texts = [label] if isinstance(label, str) and label.strip().upper() not in letters else []
        if correct in letters[: len(choices)]:
            texts.append(choices[letters.index(correct)])
        if correct is None and not texts:
            raise ValueError(f"label {label!r} is neither a letter, nor the index or the text of a choice")
        return cls(letters, correct, tuple(texts))


def gpqa(sample: Sample) -> float:
    """1 if the response names the right choice: `Answer: B`, `(B) is correct`, or a letter at its end.

    The chain of thought does not count. The label is the letter, the index or the text of the right choice;
    `metadata` may hold `choices`, `valid_letters` and `correct_letter`. If the response names no letter, the
    text of the choice is looked for.

    >>> gpqa(Sample(index=0, group_id=0, response="<think>A?</think> The answer is (C).", label="C"))
    1.0
    """
    question = Question.of(sample.label, sample.metadata)
    said = chosen(sample.response, question.letters)
    if said is not None and question.correct is not None:
        return float(said == question.correct)
    words = f" {_plain(_conclusion(sample.response))} "
    return float(any(_plain(text) and f" {_plain(text)} " in words for text in question.texts))


def chosen(response: str | None, letters: Sequence[str]) -> str | None:
    """The letter that a response settles on, of `letters`: in its last box, after `answer`, `option` or
    `choice`, before `is correct`, else the last capital letter that stands alone."""
    if response is None:
        return None
    text = _conclusion(response)
    boxed = (
        (last_boxed(text) or "").strip(" ().").removeprefix(r"\text{").removesuffix("}").strip(" ().").upper()
    )
    if boxed in letters:
        return boxed
    for pattern in _NAMED:
        named: list[str] = [letter.upper() for letter in pattern.findall(text) if letter.upper() in letters]
        if named:
            return named[-1]
    alone: list[str] = [letter for letter in _LETTER.findall(text) if letter in letters]
    return alone[-1] if alone else None


def check_label(prompt: Prompt) -> None:
    """Raises ValueError unless the label or the metadata tell the right choice."""
    Question.of(prompt.label, prompt.metadata)


def _choices(choices: Any) -> list[str]:
    listed = choices.values() if isinstance(choices, Mapping) else choices
    return [str(choice) for choice in listed]


def _correct(label: object, given: object, letters: Sequence[str], choices: Sequence[str]) -> str | None:
    if isinstance(given, str):
        return given.strip().upper()
    if isinstance(label, int) and not isinstance(label, bool) and 0 <= label < len(letters):
        return letters[label]
    if isinstance(label, str):
        if label.strip().upper() in letters:
            return label.strip().upper()
        same = [i for i, choice in enumerate(choices[: len(letters)]) if _plain(choice) == _plain(label)]
        return letters[same[0]] if same else None
    return None


def _conclusion(response: str) -> str:
    return response.rsplit("</think>", 1)[-1]


def _plain(text: str) -> str:
    return _WORDS.sub(" ", text.lower()).strip()
