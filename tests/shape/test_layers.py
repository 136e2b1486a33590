"""Imports point downwards, and cheap things stay cheap to import."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {
    "torch",
    "llvmlite",
    "transformers",
    "pyarrow",
    "ray",
    "sglang",
    "vllm",
    "matplotlib",
    "tokenizers",
    "safetensors",
}

TASK = """
def prompts(rng):
    return {"prompt": rng.choice("abc"), "label": "b"}
"""
RUN = """
model = "{model}"
prompts.source = "task.py:prompts"
rollout = {{ batch_size = 1, samples_per_prompt = 2, max_response_tokens = 1 }}
reward.fn = "random"
loop.steps = 1
"""


STATIONS = """
import importlib, pkgutil, sys, types

class Foreign(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return object

# Of two sinks: a second to import, and nothing of ours.
for name in ("wandb", "tensorboard.compat.proto.event_pb2", "tensorboard.compat.proto.summary_pb2",
             "tensorboard.summary.writer.record_writer"):
    sys.modules[name] = Foreign(name)
for station in ("config", "store", "telemetry", "render", "prompts", "envs", "runtime"):
    package = importlib.import_module(f"strop.{station}")
    for found in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"strop.{station}.{found.name}")
"""


def loaded_after(*stages: str, directory: Path) -> list[set[str]]:
    """Top-level modules that a fresh interpreter holds after each of `stages`, one after another."""
    report = (
        "import json, sys; print('\\nloaded', json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    )
    program = "\n".join(f"{stage}\n{report}" for stage in stages)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{program}"],
        capture_output=True,
        text=True,
        cwd=directory,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [line for line in done.stdout.splitlines() if line.startswith("loaded ")]
    return [set(json.loads(line.removeprefix("loaded "))) for line in found]


def commands(*argv: tuple[str, ...], exit_code: int) -> str:
    """`strop ARGUMENTS`, one after another; each must end with `exit_code`."""
    return f"""
from strop.cli.main import main
for arguments in {argv!r}:
    sys.argv = ["strop", *arguments]
    try:
        code = main() or 0
    except SystemExit as ended:
        code = ended.code or 0
    assert code == {exit_code}, code
"""


WRONG = ("train", "run.toml"), ("train", "absent.toml"), ("train", "run.toml", "--loop.stepz", "3")
STAGES = {
    "strop": "import strop",
    "help": commands(("--help",), exit_code=0),
    "wrong input": commands(*WRONG, exit_code=2),
    "algo": "import strop.algo.advantages, strop.algo.aggregate, strop.algo.batch",
    "stations": STATIONS,
}
"""In one interpreter, for its start takes longer than most: what one loads, those behind it hold too."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What is loaded after each stage."""
    directory = tmp_path_factory.mktemp("stages")
    (directory / "run.toml").write_text('model = "tiny"\n[loop]\nstepz = 3\n')
    return dict(zip(STAGES, loaded_after(*STAGES.values(), directory=directory), strict=True))


def test_imports_point_downwards():
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [lint, "--no-logo", "--no-cache"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_strop_loads_nothing_heavy(loaded):
    assert loaded["strop"] & {*HEAVY, "numpy", "pydantic"} == set()


def test_stations_without_tensors_load_without_torch(loaded):
    assert "torch" not in loaded["stations"]


def test_the_numpy_half_of_algo_loads_without_torch(loaded):
    assert loaded["algo"] & HEAVY == set()


@pytest.mark.slow
def test_a_step_of_training_needs_neither_transformers_nor_the_compiler(tiny_dir, tmp_path):
    """Each takes longer to import than all else that a short run does before its first token."""
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "run.toml").write_text(RUN.format(model=tiny_dir))
    [loaded] = loaded_after(commands(("train", "run.toml"), exit_code=0), directory=tmp_path)
    assert "torch" in loaded
    assert loaded & {"transformers", "sympy"} == set()


def test_help_loads_nothing_heavy(loaded):
    assert loaded["help"] & HEAVY == set()


def test_config_errors_load_nothing_heavy(loaded):
    assert loaded["wrong input"] & HEAVY == set()
