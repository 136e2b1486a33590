import io
import sys

from strop.sample import Sample, Status, Tokens
from strop.telemetry.base import Silent
from strop.telemetry.console import Console
from strop.telemetry.printable import one_line, printable
from strop.telemetry.step_line import duration, header

RECORD = {
    "step": 2,
    "reward/mean": 0.4375,
    "rollout/response_tokens": 11.94,
    "rollout/tokens_per_s": 312.4,
    "train/tokens_per_s": 1204.2,
    "time/rollout_s": 5.0,
    "time/train_s": 19.0,
    "time/sync_s": 0.0,
}


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def plain():
    file, clock = io.StringIO(), Clock()
    return Console(file, live=False, clock=clock), file, clock


def test_a_step_is_one_line_under_a_header_that_names_the_units_once():
    console, file, clock = plain()
    console.begin("numbers", 40, 2)
    clock.now = 25.04
    console.step(RECORD)
    clock.now = 65.04
    console.step({**RECORD, "step": 3, "reward/mean": 1.0})
    assert file.getvalue() == (
        """numbers
   step  reward        reply tok  rollout tok/s  train tok/s  step s  roll/train/sync/rest %    left
   3/40  0.438              11.9            312        1,204    25.0               20/76/0/4   15:26
   4/40  1.000              11.9            312        1,204    40.0              12/47/0/40   19:31
"""
    )


def test_the_table_fits_100_columns():
    console, file, clock = plain()
    console.begin("numbers", 40, 2)
    clock.now = 1e5
    console.step({**RECORD, "reward/mean": -12.5, "rollout/tokens_per_s": 1234567.0})
    assert len(header({})) <= 100
    assert max(map(len, file.getvalue().splitlines())) <= 100


def test_a_number_that_is_missing_or_not_finite_is_a_dash():
    console, file, _ = plain()
    console.begin("numbers", 3)
    console.step({"step": 0, "reward/mean": float("nan")})
    assert file.getvalue().splitlines()[-1].split() == ["1/3", "–", "–", "–", "–", "0.0", "–", "0", "s"]


def test_status_is_silent_until_half_a_minute_went_by():
    console, file, clock = plain()
    console.begin("numbers", 40)
    clock.now = 29.0
    console.status("rollout 1/64")
    clock.now = 31.0
    console.status("rollout 37/64 samples")
    clock.now = 32.0
    console.status("rollout 38/64 samples")
    assert file.getvalue().splitlines() == ["numbers", "  … rollout 37/64 samples"]


def test_a_sample_is_shown_with_its_question_and_reward():
    console, file, _ = plain()
    prompt = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Which is larger?\n52, 17"},
    ]
    tokens = Tokens.context([1]) + Tokens.drawn([5, 6], [-1, -1], [0, 0])
    console.sample(
        Sample(
            index=0,
            group_id=0,
            prompt=prompt,
            sequence=tokens,
            prompt_length=1,
            response="[bold]52[/bold]",
            reward=1.0,
            status=Status.COMPLETED,
        )
    )
    assert file.getvalue().splitlines() == [
        "      ┌ sample reward 1 · 2 tokens · completed",
        "      │ Which is larger? ⏎ 52, 17",
        "      └ [bold]52[/bold]",
    ]


def evaluation(name, when, **known):
    unknown = {"mean": None, "low": None, "high": None, "pass_at_1": None, "n": 0, "failed": 0}
    return {"dataset": name, "when": when, **unknown, **known}


def test_evaluations_notes_and_the_end_are_lines():
    console, file, _ = plain()
    console.evaluated(evaluation("numbers", "start", mean=0.08203, low=0.0544, high=0.122, n=256))
    console.evaluated(evaluation("sums", "end", failed=7))
    console.evaluated(evaluation("none", "end", mean=0.001, low=-0.0001, high=0.002, n=9))
    console.evaluated(evaluation("code", "step 2", mean=0.5, n=1, pass_at_1=0.5, pass_at_8=0.75))
    console.note("2 groups replaced")
    console.end(["finished in 3:20", "strop show runs/x"])
    assert file.getvalue().splitlines() == [
        "  eval  numbers  start  mean 0.082 [0.054, 0.122]  n 256",
        "  eval  sums  end  mean –  n 0  7 failed",
        "  eval  none  end  mean 0.001 [0.000, 0.002]  n 9",
        "  eval  code  step 2  mean 0.500  pass@8 0.750  n 1",
        "  · 2 groups replaced",
        "finished in 3:20",
        "strop show runs/x",
    ]


def test_plain_output_has_no_control_sequences_whatever_the_environment_says(monkeypatch, capsys):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    console = Console(sys.stdout, live=False)
    console.begin("x", 4)
    console.step(RECORD)
    console.end(["done"])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert len(out.splitlines()) == 4


def test_model_output_cannot_steer_the_terminal():
    assert printable("a\x1b[31mb\x07\x9b\u202e\n") == "a␛[31mb␇\ufffd\ufffd\n"


def test_long_text_is_cut_to_one_line():
    assert one_line("one\ntwo three", 9) == "one ⏎ tw…"


def test_a_live_console_leaves_the_cursor_as_it_was():
    file = io.StringIO()
    console = Console(file, live=True)
    console.begin("numbers", 4)
    console.status("rollout")
    console.step({**RECORD, "step": 0})
    console.end(["done"])
    console.end()
    shown = file.getvalue()
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1
    assert shown.endswith("done\n")


def test_durations_are_short():
    assert [duration(s) for s in (3.2, 187, 7500, 457200)] == ["3 s", "3:07", "2 h 05", "5 d"]


def test_no_sink_is_a_sink():
    silent = Silent()
    silent.begin("x", 1)
    silent.step(RECORD)
    silent.end()
