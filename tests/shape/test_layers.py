"""Imports point downwards, and cheap things stay cheap to import."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {
    "torch",
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


def loaded_after(code: str, *, directory: Path = ROOT) -> set[str]:
    """Top-level modules that a fresh interpreter holds after `code`."""
    report = "\nimport json, sys; print('\\n' + json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}{report}"],
        capture_output=True,
        text=True,
        cwd=directory,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def loaded_by_commands(*commands: tuple[str, ...], exit_code: int, directory: Path) -> set[str]:
    """The same after `strop ARGUMENTS`, one after another; each must end with `exit_code`."""
    code = f"""
from strop.cli.main import main
for arguments in {commands!r}:
    sys.argv = ["strop", *arguments]
    try:
        code = main() or 0
    except SystemExit as ended:
        code = ended.code or 0
    assert code == {exit_code}, code
"""
    return loaded_after(code, directory=directory)


def test_imports_point_downwards():
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [lint, "--no-logo", "--no-cache"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_strop_loads_nothing_heavy():
    assert loaded_after("import strop") & {*HEAVY, "numpy", "pydantic"} == set()


def test_stations_without_tensors_load_without_torch():
    code = """
import importlib, pkgutil
for station in ("config", "store", "telemetry", "render", "prompts", "envs", "runtime"):
    package = importlib.import_module(f"strop.{station}")
    for found in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"strop.{station}.{found.name}")
"""
    assert "torch" not in loaded_after(code)


def test_the_numpy_half_of_algo_loads_without_torch():
    code = "import strop.algo.advantages, strop.algo.aggregate, strop.algo.batch"
    assert loaded_after(code) & HEAVY == set()


@pytest.mark.slow
def test_a_step_of_training_needs_neither_transformers_nor_the_compiler(tiny_dir, tmp_path):
    """Each takes longer to import than all else that a short run does before its first token."""
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "run.toml").write_text(RUN.format(model=tiny_dir))
    loaded = loaded_by_commands(("train", "run.toml"), exit_code=0, directory=tmp_path)
    assert "torch" in loaded
    assert loaded & {"transformers", "sympy"} == set()


def test_help_loads_nothing_heavy(tmp_path):
    assert loaded_by_commands(("--help",), exit_code=0, directory=tmp_path) & HEAVY == set()


def test_config_errors_load_nothing_heavy(tmp_path):
    (tmp_path / "run.toml").write_text('model = "tiny"\n[loop]\nstepz = 3\n')
    wrong = ("train", "run.toml"), ("train", "absent.toml"), ("train", "run.toml", "--loop.stepz", "3")
    assert loaded_by_commands(*wrong, exit_code=2, directory=tmp_path) & HEAVY == set()
