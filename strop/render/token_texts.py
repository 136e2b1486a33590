"""The text that each token of a response adds."""

from collections.abc import Callable, Sequence

Decode = Callable[[Sequence[int]], str]
_BROKEN = "\ufffd"


def token_texts(ids: Sequence[int], decode: Decode) -> list[str]:
    """One text a token; a character of several tokens is with the last of them.

    Decoded in a sliding window: a tokenizer may give a token other text at the start than after another.
    """
    texts: list[str] = []
    begin = known = 0
    for end in range(1, len(ids) + 1):
        before, after = decode(ids[begin:known]), decode(ids[begin:end])
        if after.endswith(_BROKEN) and end < len(ids):
            texts.append("")
            continue
        texts.append(after[len(before) :])
        begin, known = known, end
    return texts
