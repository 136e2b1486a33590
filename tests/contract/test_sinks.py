"""Every sink keeps the seam's promises: it shows a run, and never fails one. A new one: a line in `SINKS`."""

import io
import os
import subprocess
import sys
from itertools import product

import pytest
from cases import case
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.sample import Sample, Status, Tokens
from strop.telemetry.base import Silent
from strop.telemetry.charts import Charts
from strop.telemetry.console import Console


class Numbers:
    """A chart that draws nothing."""

    def write(self, step, values):
        assert all(isinstance(value, float) for value in values.values())

    def close(self, *, ok): ...


SINKS = {
    "console, plain": lambda file: Console(file, live=False),
    "console, live": lambda file: Console(file, live=True),
    "silent": lambda file: Silent(),
    "console and a chart": lambda file: Charts(
        Console(file, live=False),
        {"chart": lambda first_step: Numbers()},
        lambda name, why: pytest.fail(f"{name}: {why}"),
    ),
}
ATTACK = "\x1b]0;title\x07\x1b[2J\r\x9b31m\u202egnp"
"""Sets a title, clears the screen, goes back to the start of the line, colours, turns the writing around."""


def sample_of(response="52", prompt="Which is larger?", reward=1.0):
    tokens = Tokens.context([1]) + Tokens.drawn([5, 6], [-1, -1], [0, 0])
    return Sample(
        index=0,
        group_id=0,
        prompt=prompt,
        sequence=tokens,
        prompt_length=1,
        response=response,
        reward=reward,
        status=Status.COMPLETED if reward is not None else Status.FAILED,
    )


def evaluation(**known):
    unknown = {"mean": None, "low": None, "high": None, "pass_at_1": None, "n": 0, "failed": 0}
    return {"dataset": "numbers", "step": 2, "when": "step 2", **unknown, **known}


CALLS = {
    "begin": lambda sink: sink.begin("numbers", 4),
    "begin in the middle": lambda sink: sink.begin("numbers", 4, 2),
    "begin a run of no steps": lambda sink: sink.begin("numbers", 0),
    "status": lambda sink: sink.status("rollout 3/64"),
    "status, empty": lambda sink: sink.status(""),
    "step": lambda sink: sink.step({"step": 2, "reward/mean": 0.5, "time/train_s": 1.0}),
    "step of which nothing is known": lambda sink: sink.step({"step": 0, "reward/mean": None}),
    "step that is not finite": lambda sink: sink.step({"step": 0, "reward/mean": float("nan")}),
    "sample": lambda sink: sink.sample(sample_of()),
    "sample, blank": lambda sink: sink.sample(Sample(index=0, group_id=0)),
    "sample, failed": lambda sink: sink.sample(sample_of(response="", reward=None)),
    "sample of chat": lambda sink: sink.sample(
        sample_of(prompt=[{"role": "system", "content": "Be brief."}])
    ),
    "evaluated": lambda sink: sink.evaluated(evaluation(mean=0.25, low=0.2, high=0.31, pass_at_4=0.5, n=256)),
    "evaluated, all failed": lambda sink: sink.evaluated(evaluation(failed=7)),
    "note": lambda sink: sink.note("stopping after this step"),
    "end": lambda sink: sink.end(),
    "end with lines": lambda sink: sink.end(["run directory  runs/x", "look  strop show runs/x"]),
}


def everything(sink):
    for call in CALLS.values():
        call(sink)
    sink.end()


@pytest.mark.parametrize("name", SINKS)
@settings(max_examples=15, deadline=None)
@given(order=st.lists(st.sampled_from(sorted(CALLS)), max_size=12))
def test_methods_may_be_called_in_any_order(name, order):
    sink = SINKS[name](io.StringIO())
    for call in order:
        CALLS[call](sink)
    sink.end()
    sink.end()


SHOWS = {
    "sample": lambda sink: sink.sample(sample_of(response=ATTACK, prompt=ATTACK)),
    "sample of chat": lambda sink: sink.sample(sample_of(prompt=[{"role": "user", "content": ATTACK}])),
    "status": lambda sink: sink.status(ATTACK),
    "note": lambda sink: sink.note(ATTACK),
}


def test_text_of_a_model_is_shown_and_not_obeyed():
    for (name, open_sink), (what, show) in product(SINKS.items(), SHOWS.items()):
        with case(name, what):
            file = io.StringIO()
            sink = open_sink(file)
            sink.begin("numbers", 1)
            show(sink)
            sink.end()
            orders = ("\x1b]0;", "\x1b[2J\r", "\x9b", "\u202e", "\x07")
            assert [part for part in orders if part in file.getvalue()] == []


def test_text_of_a_model_is_no_markup():
    texts = ["[bold]no markup[/bold]", "[/]", ":smile:", "http://x.y", "\ud83d", "a" * 10_000]
    for (name, open_sink), text in product(SINKS.items(), texts):
        with case(name, text[:30]):
            sink = open_sink(io.StringIO())
            sink.begin(text, 1)
            sink.sample(sample_of(response=text, prompt=text))
            sink.status(text)
            sink.note(text)
            sink.end([text])


class Gone(io.StringIO):
    """A file that cannot be written."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error

    def flush(self):
        raise self.error


def test_a_file_that_cannot_be_written_does_not_fail_a_run():
    errors = [
        BrokenPipeError(32, "Broken pipe"),
        OSError(28, "No space left on device"),
        BlockingIOError(11, "again"),
    ]
    for (name, open_sink), error in product(SINKS.items(), errors):
        with case(name, error):
            everything(open_sink(Gone(error)))


def test_a_file_that_is_closed_does_not_fail_a_run():
    for name, open_sink in SINKS.items():
        with case(name):
            file = io.StringIO()
            sink = open_sink(file)
            sink.begin("numbers", 4)
            file.close()
            everything(sink)


def test_a_terminal_of_few_characters_shows_what_it_can():
    for name, open_sink in SINKS.items():
        with case(name):
            file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
            sink = open_sink(file)
            everything(sink)
            sink.sample(sample_of(response="naïve \ud83d answer"))
            sink.end()
            file.flush()
            shown = file.buffer.getvalue().decode("ascii")
            assert isinstance(sink, Silent) or "na?ve" in shown


@pytest.fixture
def pipe_without_reader():
    """What is left of `strop train … | head -1` after the first line."""
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


def ended(command, stdout):
    """Exit code and complaints of a program."""
    done = subprocess.run([sys.executable, *command], stdout=stdout, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stderr.decode()


PROGRAM = """
import sys
from strop.telemetry.console import Console
console = Console(live={live})
console.begin("numbers", 1)
console.step({{"step": 0}})
console.end(["done"])
print("and what others print")
sys.exit(3)
"""


@pytest.mark.parametrize("live", [False, True])
def test_a_run_outlives_the_reader_of_its_pipe(live, pipe_without_reader):
    assert ended(["-c", PROGRAM.format(live=live)], pipe_without_reader) == (3, "")


def command(*words):
    return ["-c", f"import sys; from strop.cli.main import main; sys.exit(main({list(words)}))"]


def test_a_command_outlives_the_reader_of_its_pipe(pipe_without_reader):
    """It says more than is held back until its end."""
    assert ended(command("config", "--keys"), pipe_without_reader) == (0, "")


def test_a_command_without_any_standard_output_does_its_work():
    again = f"[sys.executable, *{command('--help')}]"
    script = ["-c", f"import os, sys; os.close(1); os.execv(sys.executable, {again})"]
    assert ended(script, subprocess.DEVNULL) == (0, "")
