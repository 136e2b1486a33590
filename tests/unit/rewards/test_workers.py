"""Worker processes: started late, replaced when they end, gone when their parent is."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from strop.errors import RewardFailed
from strop.rewards.workers import Workers

PROGRAM = """
import json, os, struct, sys, time

def write(reply):
    text = json.dumps(reply).encode()
    sys.stdout.buffer.write(struct.pack(">I", len(text)) + text)
    sys.stdout.buffer.flush()

{first}
while header := sys.stdin.buffer.read(4):
    question = json.loads(sys.stdin.buffer.read(struct.unpack(">I", header)[0]))
    if "signal" in question: os.kill(os.getpid(), question["signal"])
    if "exit" in question: sys.exit(question["exit"])
    if "sleep" in question: time.sleep(question["sleep"])
    write({{"pid": os.getpid(), "last": question.get("last", False)}})
"""


@pytest.fixture
def workers(tmp_path):
    def workers(first='write({"ready": True})', **keys):
        (tmp_path / "program.py").write_text(PROGRAM.format(first=first))
        return Workers(tmp_path / "program.py", what="asking", **keys)

    return workers


def is_running(pid):
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


async def pid_of(asked):
    return (await asked.ask({}))["pid"]


async def test_a_process_is_kept_until_it_is_closed(workers):
    asked = workers()
    first, second = await pid_of(asked), await pid_of(asked)
    await asked.close()
    await asked.close()
    assert first == second
    assert not is_running(first)


async def test_no_more_processes_than_asked_for(workers):
    asked = workers(num=2)
    pids = {reply["pid"] for reply in await asyncio.gather(*(asked.ask({"sleep": 0.02}) for _ in range(6)))}
    await asked.close()
    assert len(pids) == 2


@pytest.mark.parametrize("number", [signal.SIGXCPU, signal.SIGSEGV, signal.SIGABRT])
async def test_a_question_that_ends_its_process_has_no_reply_and_harms_no_other(workers, number):
    asked = workers(num=1)
    first = await pid_of(asked)
    assert await asked.ask({"signal": number}) is None
    assert await pid_of(asked) != first
    await asked.close()


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"signal": signal.SIGKILL}, "asking: its process was ended by signal 9"),
        ({"exit": "out of order"}, "asking: its process ended with code 1: out of order"),
    ],
)
async def test_a_process_ended_from_outside_is_a_failure_and_not_the_questions_doing(
    workers, question, message
):
    asked = workers(num=1)
    with pytest.raises(RewardFailed) as caught:
        await asked.ask(question)
    assert str(caught.value) == message
    assert await pid_of(asked)
    await asked.close()


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ('write({"error": "no such package"}); sys.exit()', "asking: no such package"),
        ('sys.exit("broken")', "asking does not start: its process ended with code 1: broken"),
    ],
)
async def test_a_process_that_cannot_work_says_why(workers, first, message):
    with pytest.raises(RewardFailed) as caught:
        await workers(first).ask({})
    assert str(caught.value) == message


async def test_a_process_that_says_it_is_spent_is_not_asked_again(workers):
    asked = workers(num=1)
    first = (await asked.ask({"last": True}))["pid"]
    assert await pid_of(asked) != first
    await asked.close()


async def test_a_cancelled_question_ends_the_process_that_it_waits_for(workers):
    asked = workers(num=1)
    first = await pid_of(asked)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await asked.ask({"sleep": 60})
    assert not is_running(first)
    assert await pid_of(asked) != first
    await asked.close()


KILLED = """
import asyncio, pathlib, sys
from strop.rewards.workers import Workers

async def main():
    print((await Workers(pathlib.Path(sys.argv[1]), what="asking").ask({}))["pid"], flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def test_no_process_outlives_a_parent_that_is_killed(workers):
    script = str(workers().script)
    parent = subprocess.Popen([sys.executable, "-c", KILLED, script], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(child)
    assert os.getpid() != child
