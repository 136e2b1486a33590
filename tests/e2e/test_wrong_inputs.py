"""Wrong input, through the real command: exit 2, one line on stderr, nothing on stdout, nothing written."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cases import case
from messages import COMMANDS, FLAGS, RUN_FAILS, TOML
from messages_of_options import OPTIONS
from processes import Shell
from run_facts import books, content, summary

from strop.cli.main import main

SMALL = Path(__file__).with_name("run.toml")
RUN = """model = "tiny"
[prompts]
files = ["data.jsonl"]
[rollout]
batch_size = 2
samples_per_prompt = 2
max_response_tokens = 8
[loop]
steps = 1
[runtime]
threads = 1
"""
DATA = '{"prompt": "ab", "label": "b"}\n{"prompt": "cd", "label": "d"}\n'
MINE = """from itertools import count
from pathlib import Path

from strop import Sample

def reward(sample: Sample) -> float:
    return 1.0

NUMBER = 3
CALLS = count()

class HalfAnEnv:
    async def start(self, prompt): ...

def misspelt_task(rng):
    return {"prompt": "a", "lable": "b"}

def broken_task(rng):
    raise KeyError("no")

def random_task(rng):
    return {"prompt": str(next(CALLS))}

def long_task(rng):
    return {"prompt": "x" * 3000}

def two_samples(a, b):
    return 1.0

def broken_reward(sample):
    return sample.lable

def length(sample):
    return sum(sample.tokens)

async def move_the_run_away(sample):
    if not Path("moved").exists():
        Path("run").rename("moved")
        Path("run").touch()
    return 1.0

class BrokenEnv:
    async def start(self, prompt):
        raise KeyError("no")

    async def step(self, reply): ...

    async def close(self): ...
"""


@pytest.fixture(scope="session")
def models(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Model directories in each of which one thing is wrong."""
    models = tmp_path_factory.mktemp("wrong")
    for name in (
        "no_tokenizer",
        "no_weights",
        "no_config",
        "broken_config",
        "gpt2",
        "cut_short",
        "one_layer",
    ):
        shutil.copytree(shell.home / "models/tiny", models / name)
    (models / "no_tokenizer/tokenizer_config.json").unlink()
    (models / "no_weights/model.safetensors").unlink()
    (models / "no_config/config.json").unlink()
    weights = models / "cut_short/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    one_layer = json.loads((models / "one_layer/config.json").read_text()) | {"num_hidden_layers": 1}
    (models / "one_layer/config.json").write_text(json.dumps(one_layer))
    (models / "broken_config/config.json").write_text("{")
    (models / "gpt2/config.json").write_text('{"model_type": "gpt2"}')
    return models


@pytest.fixture(autouse=True)
def here(tmp_path: Path, shell: Shell, models: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a run file, data, models and functions, right ones and wrong ones."""
    files = {
        "run.toml": RUN,
        "data.jsonl": DATA,
        "broken.jsonl": DATA + '{"prompt": "ef", \n',
        "latin1.jsonl": '{"prompt": "\udcff"}\n',
        "list.jsonl": '["ab", "b"]\n',
        "number.jsonl": '{"prompt": 12}\n',
        "empty.jsonl": "\n",
        "roles.jsonl": '{"prompt": [{"role": "robot", "content": "ab"}]}\n',
        "long.jsonl": DATA + json.dumps({"prompt": "x" * 3000}) + "\n",
        "data.parquet": "",
        "data.csv": "prompt,label\n",
        "mine.py": MINE,
        "syntax.py": "def reward(sample:\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, errors="surrogateescape")
    (tmp_path / "models").symlink_to(models)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STROP_HOME", str(shell.home))
    return tmp_path


def refused(argv: list[str], here: Path, shell: Shell, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on stderr, this test's directory as HERE."""
    before = content(here), content(shell.home)
    code = main(argv)
    printed = capsys.readouterr()
    assert code == 2, printed.err
    assert printed.out == ""
    assert (content(here), content(shell.home)) == before
    assert printed.err.startswith("strop: ")
    assert printed.err.endswith("\n")
    line = printed.err.removeprefix("strop: ").removesuffix("\n").replace(str(here), "HERE")
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    "lines", [FLAGS, pytest.param(OPTIONS, marks=pytest.mark.slow)], ids=["flags", "options"]
)
def test_a_wrong_flag_or_what_it_names_is_refused_in_one_line(
    lines: dict[str, str], here: Path, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    for flags, line in lines.items():
        with case(flags):
            assert refused(["train", "run.toml", *flags.split()], here, shell, capsys) == line


def test_a_wrong_command_is_refused_in_one_line(
    here: Path, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    for command, line in COMMANDS.items():
        with case(command):
            assert refused(command.split(), here, shell, capsys) == line


def test_a_wrong_run_file_is_refused_in_one_line(
    here: Path, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    for change, line in TOML.items():
        with case(*change):
            (here / "run.toml").write_text(RUN.replace(*change, 1))
            assert refused(["train", "run.toml"], here, shell, capsys) == line


def test_a_resumed_run_refuses_other_settings(
    whole: Path, here: Path, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["train", str(SMALL), "--store.dir", str(whole), "--resume", "--lr", "0.5"]
    before = content(whole)
    assert refused(argv, here, shell, capsys) == (
        "--lr: train.optim.lr = 0.5, but the run was begun with 0.001; set it back or begin a new run; "
        "a resumed one may change store, telemetry, runtime.threads only"
    )
    assert content(whole) == before


def test_a_resumed_run_refuses_other_steps_where_the_learning_rate_ends_with_them(
    whole: Path, here: Path, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["train", str(SMALL), "--store.dir", str(whole), "--resume", "--loop.steps", "8"]
    assert refused(argv, here, shell, capsys) == (
        "--loop.steps: loop.steps = 8, but the run was begun with 5, where train.optim.schedule = "
        '"cosine" ends; set it back or begin a new run; a resumed one may change store, telemetry, '
        "runtime.threads only"
    )


def test_a_resumed_run_refuses_to_end_in_the_past(
    whole: Path, here: Path, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(whole, here / "run")
    config = json.loads((here / "run/config.json").read_text())
    config["values"]["train"]["optim"]["schedule"] = "constant"
    (here / "run/config.json").write_text(json.dumps(config))
    flags = ["--train.optim.schedule", "constant", "--loop.steps", "3"]
    argv = ["train", str(SMALL), "--store.dir", "run", "--resume", *flags]
    assert refused(argv, here, shell, capsys) == (
        "--loop.steps: loop.steps = 3, but the run is 5 steps along; give at least 5"
    )


def test_a_resumed_run_refuses_other_prompts_before_anything_is_deleted(
    here: Path, shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = shell.run("train", "run.toml", "--store.dir", "run", cwd=here)
    assert ended.code == 0, ended.err
    (here / "data.jsonl").write_text(DATA.replace('"ab"', '"ba"'))
    argv = ["train", "run.toml", "--store.dir", "run", "--resume", "--loop.steps", "2"]
    assert refused(argv, here, shell, capsys) == (
        'store.dir = "run": the saved position belongs to other prompts, or to another prompts.seed or '
        "prompts.shuffle; resume with the data and the order that the run began with"
    )


def test_wrong_input_on_a_fresh_machine_makes_no_model(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STROP_HOME", str(here / "home"))
    assert main(["train", "run.toml", "--prompts.files", "broken.jsonl"]) == 2
    assert not (here / "home").exists()


def test_the_installed_command_refuses_in_one_line(here: Path) -> None:
    command = [Path(sys.executable).with_name("strop"), "train", "run.toml", "--rollout.bath_size", "3"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    expected = f"strop: {FLAGS['--rollout.bath_size 3']}\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", expected)


def test_what_is_wrong_is_refused_before_anything_heavy_is_loaded(here: Path) -> None:
    code = (
        "import sys; from strop.cli.main import main; "
        "codes = [main(['train', 'run.toml', *flags.split()]) for flags in sys.argv[1:]]; "
        "heavy = {'torch', 'transformers', 'tokenizers', 'pyarrow', 'rich'} & set(sys.modules); "
        "print(codes, sorted(heavy))"
    )
    flags = [
        "--loop.steps -3",
        "--store.dir models",
        "--reward.fn exakt",
        "--model ./models/no_tokenizer",
        "--prompts.files broken.jsonl",
        "--prompts.files long.jsonl",
    ]
    command = [sys.executable, "-c", code, *flags]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout == "[2, 2, 2, 2, 2, 2] []\n", ended.stderr


@pytest.mark.parametrize(("flags", "line"), RUN_FAILS.items())
def test_a_run_that_cannot_go_on_says_why_in_one_line(
    flags: str, line: str, here: Path, shell: Shell
) -> None:
    ended = shell.run("train", "run.toml", "--store.dir", "run", *flags.split(), cwd=here)
    assert ended.code == 1
    assert ended.err == f"strop: {line}\n".replace("HERE", str(here))
    assert summary(here / "run")["status"] == "failed"
    assert books(here / "run").is_balanced


def test_a_run_that_cannot_write_says_where_and_not_what_failed_after_that(here: Path, shell: Shell) -> None:
    flags = ["--store.dir", "run", "--reward.fn", "mine.py:move_the_run_away"]
    ended = shell.run("train", "run.toml", *flags, cwd=here)
    assert ended.code == 1
    assert ended.err == (
        "strop: run/samples/step-0/groups.parquet: cannot be written: Not a directory (run/samples/step-0)\n"
    )


def test_an_evaluation_in_which_every_sample_failed_has_no_mean_and_ends_in_words(
    here: Path, shell: Shell
) -> None:
    broken = "--reward.fn mine.py:broken_reward --reward.retries 0"
    flags = f"--loop.steps 0 {broken} --eval-prompt-data dev data.jsonl"
    ended = shell.run("train", "run.toml", "--store.dir", "run", *flags.split(), cwd=here)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.endswith("dev: held-out mean – (n = 0; 2 samples failed)\nrun directory  run\n")
