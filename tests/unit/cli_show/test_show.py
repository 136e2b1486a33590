import io
import subprocess
import sys

import pytest
from rich.console import Console as Terminal
from some_runs import write_run

from strop.cli.before_after import Request, choose
from strop.cli.scenes import print_view
from strop.cli.show import USAGE, main
from strop.errors import ConfigError
from strop.store.reader import RunReader
from strop.store.run_dir import RunDirectory
from strop.telemetry.terminal import is_coloured


def shown(capsys, *argv):
    assert main(list(map(str, argv))) == 0
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def refusal(*argv):
    with pytest.raises(ConfigError) as error:
        main(list(map(str, argv)))
    return str(error.value)


def test_the_same_prompt_before_and_after(tmp_path, capsys):
    run = write_run(tmp_path / "a", prompts=("p0", "p0"))
    assert shown(capsys, run, "--step", "0", "--step", "last") == [
        "prompt p0 · label 52",
        "  user: question p0",
        "",
        "  step 0  mean reward 0.500 of 2 samples",
        "    0  [-0.70: wrong 0]",
        "    1  [+0.70: right 0]",
        "",
        "  step 1  mean reward 0.500 of 2 samples",
        "    0  [-0.70: wrong 1]",
        "    1  [+0.70: right 1]",
        "",
    ]


def test_without_a_common_prompt_held_out_ones_are_shown(tmp_path, capsys):
    lines = shown(capsys, write_run(tmp_path / "a"), "--n", "1")
    assert lines == [
        "(no prompt was trained on at each of these steps; held-out prompts of numbers instead)",
        "",
        "prompt h0 · label 52",
        "  user: question h0",
        "",
        "  after 0 steps  mean reward 0.000 of 1 sample",
        "    0  before 0",
        "",
        "  after 2 steps  mean reward 1.000 of 1 sample",
        "    1  after 0",
        "",
    ]


def test_n_says_how_many_prompts(tmp_path, capsys):
    lines = shown(capsys, write_run(tmp_path / "a"), "--eval", "numbers", "--n", "4")
    assert [line for line in lines if line.startswith("prompt")] == [
        f"prompt h{i} · label 52" for i in range(4)
    ]


def test_one_step_shows_what_was_trained_on_then(tmp_path, capsys):
    lines = shown(capsys, write_run(tmp_path / "a"), "--step", "1")
    assert lines[0] == "prompt p1 · label 52"
    assert "    1  [+0.70: right 1]" in lines


def test_a_prompt_can_be_named(tmp_path, capsys):
    lines = shown(capsys, write_run(tmp_path / "a"), "--eval", "numbers", "--prompt", "h3")
    assert [line for line in lines if line.startswith("prompt")] == ["prompt h3 · label 52"]


def test_a_named_training_prompt_is_shown_where_it_was_seen(tmp_path, capsys):
    lines = shown(capsys, write_run(tmp_path / "a"), "--prompt", "p1")
    assert lines[0] == "(no prompt was trained on at each of these steps; the first of each instead)"
    assert lines[2] == "prompt p1 · label 52"


def test_the_step_of_an_evaluation_is_the_last_one_before(tmp_path, capsys):
    lines = shown(capsys, write_run(tmp_path / "a"), "--eval", "numbers", "--step", "1", "--n", "1")
    assert "  after 0 steps  mean reward 0.000 of 1 sample" in lines


def test_colours_are_used_when_there_are_any(tmp_path):
    run = write_run(tmp_path / "a", prompts=("p0", "p0"))
    view = choose(RunReader(run), Request(run, ("0",), None, 3, None))
    file = io.StringIO()
    out = Terminal(file=file, force_terminal=True, color_system="truecolor", width=100)
    print_view(out, view, open_decoder=lambda: None)
    assert "\x1b[37;48;2;0;160;0mright 0\x1b[0m" in file.getvalue()
    assert "\x1b[37;48;2;160;0;0mwrong 0\x1b[0m" in file.getvalue()


def test_no_color_and_pipes_are_plain():
    assert not is_coloured(io.StringIO(), {})

    class Tty(io.StringIO):
        def isatty(self):
            return True

    assert is_coloured(Tty(), {"TERM": "xterm"})
    assert not is_coloured(Tty(), {"TERM": "xterm", "NO_COLOR": "1"})
    assert not is_coloured(Tty(), {"TERM": "dumb"})


def test_plain_output_has_no_control_sequences(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    run = write_run(tmp_path / "a", prompts=("p0", "p0"))
    assert "\x1b" not in "".join(shown(capsys, run))


def test_help_needs_no_run(capsys):
    assert shown(capsys, "--help") == USAGE.splitlines()


def test_refusals_are_one_line(tmp_path):
    run = write_run(tmp_path / "a")
    assert refusal("--n", "2") == "strop show: expected one run directory, got 0"
    assert refusal(tmp_path / "none") == (
        f"{tmp_path}/none does not exist; name the directory of a run, e.g. runs/latest"
    )
    assert refusal(tmp_path) == (
        f"{tmp_path} is not a run directory: it has no run.json; name the directory of a run, "
        f"e.g. runs/latest"
    )
    assert refusal(run, "--step", "7") == f"{run}: has no samples of step 7; stored: 0 to 1"
    assert refusal(run, "--step", "first") == "--step: expected a whole number of at least 0, got first"
    assert refusal(run, "--n", "0") == "--n: expected a whole number of at least 1, got 0"
    assert refusal(run, "--eval", "maths") == (
        f"--eval maths: {run} has no samples of it; held-out sets there: numbers"
    )
    assert refusal(run, "--prompt", "zz") == "--prompt zz: not there; prompts at these steps: p0, p1"


def test_a_run_without_samples_says_so(tmp_path):
    RunDirectory.create(tmp_path / "a", "run", config={"values": {"model": "tiny"}}).close()
    assert refusal(tmp_path / "a") == f"{tmp_path}/a: no samples are stored yet"


def test_showing_and_comparing_import_no_torch():
    code = "import strop.cli.scenes, strop.cli.first_difference, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
