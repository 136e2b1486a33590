import numpy as np
from some_runs import sample

from strop.cli.shading import Piece, coloured, marked, needs_decoding, pieces
from strop.render.token_texts import token_texts


def utf8(ids):
    return bytes(ids).decode(errors="replace")


def after_space(ids):
    """A tokenizer that drops the space of the first word."""
    return " ".join(["zero", "one", "two"][i] for i in ids)


def test_a_character_of_several_tokens_is_with_the_last_of_them():
    assert token_texts(list("aé→b".encode()), utf8) == ["a", "", "é", "", "", "→", "b"]


def test_spaces_between_words_are_kept():
    assert token_texts([1, 0, 2, 2], after_space) == ["one", " zero", " two", " two"]


def test_token_texts_add_up_to_the_whole():
    ids = [*"naïve → 日本語 ✓".encode(), 0xE6]
    assert "".join(token_texts(ids, utf8)) == utf8(ids)


def test_a_response_of_one_advantage_needs_no_tokenizer():
    shown = sample(0, "p", "right")
    advantage = np.full(5, 0.7, np.float32)
    assert not needs_decoding(shown, advantage)
    assert pieces(shown, advantage, None) == [Piece("right", float(np.float32(0.7)))]


def test_a_response_without_advantages_is_plain():
    assert pieces(sample(0, "p", "right"), None, None) == [Piece("right", None)]


def test_tokens_are_grouped_by_advantage():
    shown = sample(0, "p", "abcd")
    advantage = np.array([1, 1, -1, 0], np.float32)
    assert needs_decoding(shown, advantage)
    assert pieces(shown, advantage, utf8) == [Piece("ab", 1.0), Piece("c", -1.0), Piece("d", 0.0)]


def test_tokens_that_are_not_trained_have_no_advantage():
    shown = sample(0, "p", "ab")
    shown.append_response_tokens(tokens=list(b"tool"), trainable=False, text="tool")
    assert pieces(shown, np.ones(6, np.float32), utf8) == [Piece("ab", 1.0), Piece("tool", None)]


def test_marks_stand_in_for_colours():
    parts = [Piece("52", 0.94), Piece("tool", None), Piece("!", -1.0)]
    assert marked(parts).plain == "[+0.94: 52][not trained: tool][-1.00: !]"


def test_samples_without_advantages_have_no_marks():
    assert marked([Piece("52", None)]).plain == "52"


def test_green_is_reinforced_and_deeper_when_stronger():
    text = coloured([Piece("a", 1.0), Piece("b", 0.5), Piece("c", -1.0), Piece("d", 0.0)], scale=1.0)
    assert [str(span.style) for span in text.spans] == [
        "white on rgb(0,160,0)",
        "white on rgb(0,105,0)",
        "white on rgb(160,0,0)",
    ]


def test_model_output_is_made_harmless():
    assert marked([Piece("\x1b[31m", None)]).plain == "␛[31m"


def test_a_long_response_is_cut():
    assert len(marked([Piece("x" * 5000, None)]).plain) == 1201
