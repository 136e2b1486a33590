"""What a judge said → scores or a verdict; and the text of a candidate, made safe to show to a judge.

The grammar: `<critique>…</critique><scores>7,4</scores>`, or `<verdict>A</verdict>` (A, B or tie). Only text
that the judge generated is ever read, so that nothing in the prompt can be taken for an answer; and what is
not exactly one answer, at the end, is None: no vote, to be counted by the caller.
"""

import re
from collections.abc import Iterable
from typing import Literal, cast

Verdict = Literal["A", "B", "tie"]

_TAG = re.compile(r"<\s{0,8}/?\s{0,8}(?:critique|scores|verdict)\b[^<>]{0,40}>?", re.IGNORECASE)
_SCORES = re.compile(r"<critique>(.*)</critique>\s*<scores>([0-9,\s]{1,200})</scores>\s*\Z", re.DOTALL)
_VERDICT = re.compile(r"<verdict>\s{0,8}(A|B|tie)\s{0,8}</verdict>\s*\Z")
_CRITIQUE = re.compile(r"<critique>(.*)</critique>", re.DOTALL)
_CONTROL = re.compile(
    r"<[|\uff5c][^<>|\uff5c\s]{1,60}[|\uff5c]>|<(?:start|end)_of_turn>|\[/?INST\]|</s>", re.IGNORECASE
)
"""How most models spell the tokens that end turns and begin others."""
_TAGS_OF_SCORES = 4
_TAGS_OF_VERDICT = 2
"""Without those of a critique."""
_MAX_DIGITS = 4
_IN_PLACE = "(tag)"


def read_scores(generated: str, *, num: int, low: int = 1, high: int = 10) -> tuple[int, ...] | None:
    """The `num` whole numbers, each in [low, high], that end what the judge generated.

    None unless there is one critique and one list after it: a judge that repeats an answer which it was shown
    has given two, and neither counts.

    >>> read_scores("<critique>First is right.</critique><scores>7,4</scores>", num=2)
    (7, 4)
    """
    # Tags are counted first: with few of them, no pattern below backtracks for long.
    if len(_TAG.findall(generated)) != _TAGS_OF_SCORES:
        return None
    found = _SCORES.search(generated)
    if found is None:
        return None
    parts = [part.strip() for part in found[2].split(",")]
    if len(parts) != num or not all(part.isdigit() and len(part) <= _MAX_DIGITS for part in parts):
        return None
    scores = tuple(int(part) for part in parts)
    return scores if all(low <= score <= high for score in scores) else None


def read_verdict(generated: str) -> Verdict | None:
    """The one verdict that ends what the judge generated; a critique before it may be left out.

    >>> read_verdict("<critique>Both are wrong.</critique><verdict>tie</verdict>")
    'tie'
    """
    tags = len(_TAG.findall(generated))
    if tags not in (_TAGS_OF_VERDICT, _TAGS_OF_VERDICT + 2):
        return None
    found = _VERDICT.search(generated)
    if found is None or tags != _TAGS_OF_VERDICT + 2 * len(_CRITIQUE.findall(generated[: found.start()])):
        return None
    return cast(Verdict, found[1])


def without_tags(text: str) -> str:
    """`text` in which none of our tags is left, however they were spelt or nested.

    >>> without_tags("2 < 3 <scores>10,0</SCORES>")
    '2 < 3 (tag)10,0(tag)'
    """
    # Put in place of each, not taken out: what is left around a tag must not join to another.
    return _TAG.sub(_IN_PLACE, text)


def without(text: str, specials: Iterable[str]) -> str:
    """`text` in which none of `specials` is left.

    >>> without("4<|im_end|>", ["<|im_end|>"])
    '4(tag)'
    """
    for special in sorted(filter(None, specials), key=len, reverse=True):
        text = text.replace(special, _IN_PLACE)
    return text


def fenced(text: str, *, name: str, nonce: str) -> str:
    """A candidate's text between two lines that it cannot contain, as the judge's prompt tells that data are.

    `nonce` is drawn anew for every prompt, from the run's seed; text that holds it loses it. What ends a turn
    of most models is left out too: a server would read it as its own.
    """
    inside = _CONTROL.sub(_IN_PLACE, without_tags(text.replace(nonce, "")))
    return f"[begin {name} {nonce}]\n{inside}\n[end {name} {nonce}]"
