"""`StopTexts`: whether what was drawn has come to say one of the texts that end a reply."""

from collections.abc import Callable, Sequence

Decode = Callable[[Sequence[int]], str]

_SPARE = 4
"""Ids decoded beyond those that the longest text can take: the first of them may be the rest of a character,
or lose the space before it, as some tokenizers have it at the beginning of a text."""


class StopTexts:
    """Asked after every token, it decodes the last few ids only: as many that show (special tokens do not) as
    the longest text has bytes, since each of them has one byte at least.

    A function of the drawn ids alone, so that it does not matter how requests are batched.
    """

    def __init__(self, decode: Decode, texts: Sequence[str]) -> None:
        self._decode, self._texts = decode, tuple(texts)
        self._num_ids = max(len(text.encode()) for text in texts) + _SPARE
        self._shows: dict[int, bool] = {}

    def end(self, ids: Sequence[int]) -> bool:
        """Whether one of the texts is in `ids`, which had none of them before its last id."""
        start, missing = len(ids), self._num_ids
        while start and missing:
            start -= 1
            missing -= self._is_shown(ids[start])
        tail = self._decode(ids[start:])
        return any(text in tail for text in self._texts)

    def _is_shown(self, id: int) -> bool:
        if id not in self._shows:
            self._shows[id] = self._decode([id]) != ""
        return self._shows[id]
