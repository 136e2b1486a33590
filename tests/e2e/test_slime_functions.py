"""The example of functions written against slime: its launch line is its run file, and both run."""

import json
import re
import shlex
from pathlib import Path

import pytest

from strop.config.load import load_config
from strop.config.schema import leaf_paths
from strop.store.ledger import audit, read_ledger
from strop.store.samples import read_samples

EXAMPLE = Path(__file__).parents[2] / "examples/slime_functions"
README = (EXAMPLE / "README.md").read_text()


def launch_line() -> list[str]:
    """The words after `strop train` in the README."""
    block = re.search(r"```sh\nstrop train (.*?)```", README, re.DOTALL)
    assert block
    return shlex.split(block[1].replace("\\\n", " "))


def test_the_launch_line_of_the_readme_is_the_run_file(monkeypatch):
    monkeypatch.chdir(EXAMPLE)
    launched = dict(leaf_paths(load_config([], launch_line()).config))
    written = dict(leaf_paths(load_config([Path("run.toml")]).config))
    assert {
        path: (launched[path], written[path]) for path in written if launched[path] != written[path]
    } == {}


def check_run(directory: Path) -> None:
    """Trained to the end, with books that balance, and only drawn tokens trained."""
    assert json.loads((directory / "summary.json").read_text())["status"] == "finished"
    assert audit(read_ledger(directory / "ledger.jsonl")).is_balanced
    for step in range(3):
        for sample in read_samples(next((directory / f"samples/step-{step}").glob("*.parquet"))):
            assert sample.weight_versions == [str(step)]
            assert 1 <= sample.effective_response_length <= sample.response_length <= 48


@pytest.mark.slow
def test_the_example_trains_by_its_run_file(shell, tmp_path):
    ended = shell.run("train", EXAMPLE / "run.toml", "--store.dir", tmp_path / "run")
    assert ended.code == 0, ended.err
    check_run(tmp_path / "run")


@pytest.mark.slow
def test_the_example_trains_by_its_launch_line(shell, tmp_path):
    words = [f"{EXAMPLE}/{word}" if re.match(r"[\w]+\.(py|jsonl)", word) else word for word in launch_line()]
    ended = shell.run("train", *words, "--store.dir", tmp_path / "run")
    assert ended.code == 0, ended.err
    check_run(tmp_path / "run")


@pytest.mark.slow
def test_the_other_functions_of_the_example_run(shell, tmp_path):
    flags = {
        "--custom-generate-function-path": f"{EXAMPLE}/generate.py:generate",
        "--custom-rm-path": f"{EXAMPLE}/reward.py:batched_custom_rm",
        "--data-source-path": f"{EXAMPLE}/data_source.py:Sums",
    }
    given = [word for pair in flags.items() for word in pair]
    size = "--num-rollout 3 --rollout-batch-size 4 --n-samples-per-prompt 4 --rollout-max-response-len 48"
    ended = shell.run(
        "train",
        "--hf-checkpoint",
        "tiny",
        *size.split(),
        "--group-rm",
        *given,
        "--store.dir",
        tmp_path / "run",
    )
    assert ended.code == 0, ended.err
    check_run(tmp_path / "run")
