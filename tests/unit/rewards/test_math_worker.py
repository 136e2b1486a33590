"""Inside the process that compares: what it reads and writes, what it forbids, and what it finds equal."""

import io
import json
import os
import struct
import subprocess
import sys

import pytest
from cases import case

from strop.rewards.math_worker import CPU_S, SPENT, comparison, refuse, resident, serve


def framed(*messages):
    texts = [json.dumps(message).encode() for message in messages]
    return b"".join(struct.pack(">I", len(text)) + text for text in texts)


def unframed(data):
    messages = []
    while data:
        (size,) = struct.unpack(">I", data[:4])
        messages.append(json.loads(data[4 : 4 + size]))
        data = data[4 + size :]
    return messages


def test_questions_are_answered_until_they_end_or_memory_is_short():
    asked = [{"answer": answer, "label": "\ud800", "reduced": True} for answer in ("\ud800", "b")]
    replies, allowed = io.BytesIO(), []
    serve(
        io.BytesIO(framed(*asked) + b"\0\0"),
        replies,
        lambda answer, label, reduced: answer == label and reduced,
        before=allowed.append,
    )
    is_large = resident() > SPENT
    expected = [{"equal": True, "last": is_large}, {"equal": False, "last": is_large}]
    assert unframed(replies.getvalue()) == expected[: 1 if is_large else 2]
    assert set(allowed) == {CPU_S}


def test_a_comparison_may_neither_write_nor_start_anything():
    cases = [
        ("os.system", (b"touch owned",)),
        ("subprocess.Popen", ("touch", [], None, None)),
        ("socket.connect", (None, ("127.0.0.1", 80))),
        ("os.remove", ("owned", -1)),
        ("open", ("owned", "w", os.O_WRONLY | os.O_CREAT)),
    ]
    for event, arguments in cases:
        with case(event), pytest.raises(PermissionError):
            refuse(event, arguments)


@pytest.mark.parametrize(
    ("event", "arguments"),
    [("open", ("sympy.py", "r", os.O_RDONLY)), ("os.listdir", (".",)), ("import", ("sympy",))],
)
def test_a_comparison_may_read_its_library(event, arguments):
    refuse(event, arguments)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "label", "reduced", "equal"),
    [
        ("1+x", "x+1", True, True),
        ("2+2", "4", True, False),
        ("2+2", "4", False, True),
        ("x = 2+2", "4", True, False),
        (r"50\%", "50", True, True),
        ("{4}", "4", True, True),
        ("(4)", "4", True, True),
        ("", "4", True, False),
        ("__import__('os')", "4", True, False),
    ],
)
def test_what_is_equal(answer, label, reduced, equal):
    assert comparison()(answer, label, reduced) is equal


PRINTS = """
import struct, sys
from strop.rewards import math_worker

def compare(answer, label, reduced):
    spoofed = b'{"equal": true, "last": false}'
    sys.stdout.buffer.write(struct.pack(">I", len(spoofed)) + spoofed)
    print(answer, flush=True)
    return {answer, label} == {"1+x", "x+1"}

math_worker.comparison = lambda: compare
math_worker.main()
"""


def test_what_a_comparison_prints_is_never_taken_for_its_reply():
    """verifiers#1480: the text of a model was found where the result was looked for."""
    asked = framed(*({"answer": a, "label": "x+1", "reduced": True} for a in ('{"equal": true}', "1+x")))
    ended = subprocess.run([sys.executable, "-c", PRINTS], input=asked, capture_output=True, timeout=60)
    replies = unframed(ended.stdout)
    assert replies == [{"ready": True}, {"equal": False, "last": False}, {"equal": True, "last": False}]
    assert b'{"equal": true}' in ended.stderr
