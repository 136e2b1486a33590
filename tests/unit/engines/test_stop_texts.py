"""Stop texts in a growing reply: found with the token that completes them, from the tail alone."""

from hypothesis import given, settings
from hypothesis import strategies as st

from strop.engines.local.stopping import StopTexts
from strop.render.bytes import END_OF_TURN, ByteRenderer

DECODE = ByteRenderer().decode
PIECES = {0: "He said ", 1: "St", 2: "op", 3: "op! And", 4: "", 5: " ", 6: "Stop"}
"""Of a tokenizer whose tokens have several letters, and one (4) that does not show."""


def pieces(ids) -> str:
    """The space that begins a text is lost, as with sentencepiece."""
    return "".join(PIECES[i] for i in ids).removeprefix(" ")


def end_of(ids: list[int], *texts: str, decode=DECODE) -> int | None:
    """How many tokens were drawn when a text was there."""
    stops = StopTexts(decode, texts)
    return next((n for n in range(1, len(ids) + 1) if stops.end(ids[:n])), None)


ENDS = (
    ([0, 6, 0], "Stop", 2),
    ([0, 1, 2, 0], "Stop", 3),
    ([0, 1, 3, 0], "Stop", 3),
    ([0, 1, 0, 2], "Stop", None),
    ([0, 1, *[4] * 20, 2], "Stop", 23),
    ([0, 1, *[4] * 20, 3, 0], "Stop", 23),
    ([0, 5, 6], " Stop", 3),
    ([5] * 9, "   ", 4),
)


def test_stop_text_ends_with_the_token_that_completes_it():
    for ids, text, expected in ENDS:
        assert end_of(ids, text, decode=pieces) == expected, (ids, text)


def test_stop_text_of_several_bytes_a_letter_waits_for_the_last_of_them():
    ids = list("so: größer".encode())
    assert end_of(ids, "größ") == len("so: größ".encode())


def test_any_of_several_texts_ends_it():
    assert end_of(list(b"one two three"), "three", "wo", "zero") == len(b"one two")


def test_special_tokens_are_no_part_of_the_text():
    assert end_of([*b"St", END_OF_TURN, *b"op"], "Stop") == 5


@given(
    ids=st.lists(st.sampled_from([*b"ab\n", *"é".encode(), 256, 257]), max_size=24),
    texts=st.lists(st.text("abé\n", min_size=1, max_size=4), min_size=1, max_size=2),
)
@settings(max_examples=60, deadline=None)
def test_the_tail_says_what_the_whole_reply_would(ids, texts):
    whole = (n for n in range(1, len(ids) + 1) if any(text in DECODE(ids[:n]) for text in texts))
    assert end_of(ids, *texts) == next(whole, None)
