"""The text of a response in pieces, each with the advantage of its tokens, for the eye."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from strop.render.token_texts import Decode, token_texts
from strop.sample import Sample
from strop.telemetry.printable import printable

_LIMIT = 1200
"""Characters of a response that are shown."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Neighbouring tokens of one kind."""

    text: str
    advantage: float | None
    """None where nothing is trained: tool tokens, masked tokens, or samples without advantages."""


def needs_decoding(sample: Sample, advantage: NDArray[np.float32] | None) -> bool:
    """Whether the stored text is not enough: its tokens differ in advantage, or some are not trained."""
    return advantage is not None and len({*_per_token(sample, advantage)}) > 1


def pieces(sample: Sample, advantage: NDArray[np.float32] | None, decode: Decode | None) -> list[Piece]:
    """The response, cut where the advantage changes. Without `decode`, a response whose tokens differ comes
    back whole and without an advantage."""
    per_token = [] if advantage is None else _per_token(sample, advantage)
    if len(set(per_token)) <= 1:
        return [Piece(sample.response, per_token[0] if per_token else None)]
    if decode is None:
        return [Piece(sample.response, None)]
    ids = sample.tokens[sample.prompt_length :]
    merged: list[Piece] = []
    for text, worth in zip(token_texts(ids, decode), per_token, strict=True):
        before = merged.pop().text if merged and merged[-1].advantage == worth else ""
        merged.append(Piece(before + text, worth))
    return merged


def coloured(parts: list[Piece], scale: float) -> Text:
    """Green behind what is reinforced, red behind what is discouraged, the stronger the nearer to `scale`."""
    text = Text()
    for part in _cut(parts):
        text.append(part.text, _style(part.advantage, scale))
    return text


def marked(parts: list[Piece]) -> Text:
    """The same without colours: `[+0.94: 52]`, and `[not trained: …]` where advantages are around it."""
    has_any = any(part.advantage is not None for part in parts)
    text = Text()
    for part in _cut(parts):
        if part.advantage is not None:
            text.append(f"[{part.advantage:+.2f}: {part.text}]")
        else:
            text.append(f"[not trained: {part.text}]" if has_any else part.text)
    return text


def _per_token(sample: Sample, advantage: NDArray[np.float32]) -> list[float | None]:
    trained = sample.response_tokens.mask & (not sample.remove_sample)
    return [float(a) if m else None for a, m in zip(advantage, trained, strict=True)]


def _cut(parts: list[Piece]) -> list[Piece]:
    """Fit for a terminal, and not longer than one cares to read."""
    left = _LIMIT
    shown = []
    for part in parts:
        text = printable(part.text)
        shown.append(Piece(text[:left] + ("…" if len(text) > left else ""), part.advantage))
        left -= len(text)
        if left <= 0:
            break
    return shown


def _style(advantage: float | None, scale: float) -> str:
    if advantage is None:
        return ""
    if advantage == 0 or scale == 0:
        return ""
    depth = round(50 + 110 * min(abs(advantage) / scale, 1.0))
    return f"white on rgb(0,{depth},0)" if advantage > 0 else f"white on rgb({depth},0,0)"
