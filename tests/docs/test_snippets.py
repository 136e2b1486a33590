"""What a reader copies from the documentation works."""

import asyncio
import random
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from cases import case
from pages import ROOT, blocks, commands

from strop import Sample, Scores
from strop.cli.main import COMMANDS, main
from strop.config.flags import split_arguments
from strop.config.load import load_config
from strop.plugins import resolve

BASE = 'model = "tiny"\n[loop]\nsteps = 5\n'
TAKES_RUN_FILE = {"train", "config", "eval", "plan", "doctor"}
"""Commands whose flags are those of a configuration, when they are given a run file or none."""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory with the files that the pages name, and the examples."""
    for block in blocks("python", "toml"):
        if block.file and "/" not in block.file:
            (tmp_path / block.file).write_text(block.text)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


def base_for(table: dict) -> str:
    """What a fragment needs around it to be a whole run."""
    has_prompts = {"files", "source", "mixture"} & set(table.get("prompts", {}))
    return BASE if has_prompts else f'{BASE}[prompts]\nfiles = ["data.jsonl"]\n'


def test_a_run_file_or_a_part_of_one_loads() -> None:
    for block in blocks("toml"):
        with case(str(block)):
            Path("base.toml").write_text(base_for(tomllib.loads(block.text)))
            Path("part.toml").write_text(block.text)
            load_config([Path("base.toml"), Path("part.toml")])


def test_python_compiles() -> None:
    for block in blocks("python"):
        code = "\n".join(line[4:] for line in block.text.splitlines() if line.startswith((">>> ", "... ")))
        with case(str(block)):
            compile(code or block.text, str(block), "exec")


def test_a_command_that_is_shown_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    for where, line in commands():
        with case(where, line):
            assert_is_understood(line, capsys)


def assert_is_understood(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    program, *words = shlex.split(line)
    if program == "make":
        targets = {rule.split(":")[0] for rule in (ROOT / "Makefile").read_text().splitlines()}
        assert set(words) <= targets
    elif program == "strop" and words[0] in TAKES_RUN_FILE and not is_a_run(words[1:]):
        files, flags = split_arguments([word for word in words[1:] if word not in ("--resume", "--diff")])
        assert load_config(files, flags)
    elif program == "strop":
        assert words[0] in COMMANDS
        main([words[0], "--help"])
        known = capsys.readouterr().out
        assert [word for word in words[1:] if word.startswith("--") and word not in known] == []
    else:
        assert line in (".ci/run", "source .venv/bin/activate")


def is_a_run(words: list[str]) -> bool:
    files, flags = split_arguments(words)
    return flags == ["--keys"] or any(file.suffix != ".toml" for file in files)


def scored(spec: str, options: dict | None = None) -> float | Scores:
    sample = Sample(index=0, group_id=0, response="21 it is", label=21)
    found = resolve(spec, key="reward.fn", names={}, group="strop.rewards")(sample, **(options or {}))
    return asyncio.run(found) if asyncio.iscoroutine(found) else found


def test_the_rewards_of_the_tutorial_are_worth_what_it_says() -> None:
    assert scored("my_reward.py:short_and_right") == 1.0
    assert scored("bounded.py:within", {"most": 20}) == 1.0
    assert scored("parts.py:right_and_brief") == Scores(1.1, {"right": 1.0, "brief": 1.0})
    assert scored("judge.py:ask") == 0.0


def test_the_steps_of_the_tutorial_are_worth_what_it_says() -> None:
    shown = resolve("my_steps.py:shown", key="reward.fn", names={}, group="strop.rewards")
    scores = shown(Sample(index=0, group_id=0, response="6 * 7 = 42\n\nit is 42"))
    assert (scores.value, scores.steps.scores) == (0.0, (1.0, 0.0))


def test_the_task_of_the_tutorial_can_be_solved() -> None:
    fn = resolve("sums.py:addition", key="prompts.source", names={}, group="strop.prompts")
    task = fn(random.Random(0), largest=20)
    a, b = re.findall(r"[0-9]+", task["prompt"])
    assert task["label"] == int(a) + int(b)


def test_the_run_file_on_the_first_page_is_the_example() -> None:
    for block in blocks("toml"):
        if block.file and block.file.startswith("examples/"):
            example = tomllib.loads((ROOT / block.file).read_text())
            assert tomllib.loads(block.text) == example


def test_a_launch_line_of_slime_comes_to_the_run_file_beside_it() -> None:
    lines = [line for where, line in commands() if "from-slime" in where and "--advantage-estimator" in line]
    file = next(b for b in blocks("toml") if "from-slime" in str(b) and b.file == "run.toml")
    Path("other.toml").write_text(file.text)
    assert load_config([], shlex.split(lines[0])[2:]).config == load_config([Path("other.toml")]).config
