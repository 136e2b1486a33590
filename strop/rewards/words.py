"""The share of words that a response and a label have in common, as SQuAD measures it (arXiv:1606.05250)."""

import re
import string
from collections import Counter
from dataclasses import dataclass

from strop.sample import Sample

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ALL_OR_NOTHING = {"yes", "no", "noanswer"}


@dataclass(frozen=True, slots=True)
class Overlap:
    """Of the words of two texts."""

    f1: float
    precision: float
    recall: float


def f1(sample: Sample) -> float:
    """The harmonic mean of precision and recall of the response's words against the label's.

    Case, punctuation and articles aside; `yes`, `no` and `noanswer` are all or nothing.

    >>> f1(Sample(index=0, group_id=0, response="The quick fox.", label="a quick brown fox"))
    0.8
    """
    if sample.label is None:
        raise ValueError(f"prompt {sample.prompt_id!r} has no label to compare with")
    return overlap(sample.response, str(sample.label)).f1


def overlap(response: str, label: str) -> Overlap:
    """0 throughout when no word is shared."""
    said, expected = normal_words(response), normal_words(label)
    if said != expected and {said, expected} & _ALL_OR_NOTHING:
        return Overlap(0.0, 0.0, 0.0)
    words, of_label = said.split(), expected.split()
    shared = (Counter(words) & Counter(of_label)).total()
    if not shared:
        return Overlap(0.0, 0.0, 0.0)
    precision, recall = shared / len(words), shared / len(of_label)
    return Overlap(2 * precision * recall / (precision + recall), precision, recall)


def normal_words(text: str) -> str:
    """Lower case, without punctuation and articles, words apart by one space.

    >>> normal_words("The Quick Brown Fox.")
    'quick brown fox'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())
