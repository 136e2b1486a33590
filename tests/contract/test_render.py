"""Every renderer keeps the seam's promises."""

from itertools import product

import pytest
from cases import case
from chat_model import CHATML, LLAMA, make_chat_tokenizer
from hypothesis import given
from hypothesis import strategies as st

from strop.config.home import models_dir
from strop.render.open import open_renderer
from strop.sample import Prompt

HISTORY = ({"role": "user", "content": "What is 6 * 7?"},)
ANSWERS = [
    (),
    ({"role": "tool", "content": "= 42"},),
    ({"role": "tool", "content": "error: división"}, {"role": "user", "content": " Go on.\n"}),
]
REAL = models_dir() / "smollm2-135m"


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    """A model directory for each renderer."""
    root = tmp_path_factory.mktemp("render")
    (root / "bytes").mkdir()
    (root / "bytes" / "tokenizer_config.json").write_text('{"tokenizer_class": "StropByteRenderer"}')
    make_chat_tokenizer(root / "chatml", CHATML)
    make_chat_tokenizer(root / "llama", LLAMA, adds_bos=True)
    return {"bytes": root / "bytes", "chatml": root / "chatml", "llama": root / "llama", "real": REAL}


needs_real = pytest.param(
    "real",
    marks=[pytest.mark.slow, pytest.mark.skipif(not REAL.is_dir(), reason="strop model pull smollm2-135m")],
)


@pytest.fixture(scope="module", params=["bytes", "chatml", "llama", needs_real])
def renderer(request, directories):
    return open_renderer(directories[request.param])


def ids_of(renderer, *messages):
    return renderer.prompt(Prompt(id="p", messages=tuple(messages)))


def test_there_is_a_way_to_stop(renderer):
    assert renderer.stop_ids


def test_text_and_one_user_message_are_the_same(renderer):
    assert renderer.prompt(Prompt(id="p", messages=HISTORY[0]["content"])) == ids_of(renderer, *HISTORY)


def test_rendering_twice_gives_the_same_ids(renderer):
    assert ids_of(renderer, *HISTORY) == ids_of(renderer, *HISTORY)


def test_what_grows_turn_by_turn_is_the_full_render(renderer):
    stop, begun = renderer.stop_ids[0], ids_of(renderer, *HISTORY)
    for reply, answer in product(["42", "Let me see: <calc>6*7</calc>", "a\nb"], ANSWERS):
        with case(reply, answer):
            said = {"role": "assistant", "content": reply}
            full = ids_of(renderer, *HISTORY, said, *answer)
            bridge = renderer.follow_up(HISTORY, answer, last_id=stop)
            drawn = full[len(begun) : len(full) - len(bridge)]
            assert full == begun + drawn + bridge
            assert renderer.decode(drawn) == reply
            assert drawn[-1] == stop


def test_a_reply_without_its_stop_gets_one(renderer):
    stop = renderer.stop_ids[0]
    for answer in ANSWERS:
        stopped = renderer.follow_up(HISTORY, answer, last_id=stop)
        assert renderer.follow_up(HISTORY, answer, last_id=65) == [stop, *stopped], answer


def test_a_third_turn_follows_like_the_second(renderer):
    stop = renderer.stop_ids[0]
    turns = [*HISTORY, {"role": "assistant", "content": "a"}, *ANSWERS[1]]
    said = {"role": "assistant", "content": "b"}
    bridge = renderer.follow_up(turns, ANSWERS[1], last_id=stop)
    assert ids_of(renderer, *turns, said, *ANSWERS[1])[-len(bridge) :] == bridge


def test_stop_ids_do_not_show(renderer):
    assert renderer.decode(list(renderer.stop_ids)) == ""


@given(text=st.text("ab XYZ 019 ,.?\n\té…中💡", max_size=40))  # what every byte-level vocabulary covers
def test_any_text_comes_back_as_it_was(renderer, text):
    plain = ids_of(renderer, {"role": "user", "content": f"[{text}]"})
    assert f"[{text}]" in renderer.decode(plain)
